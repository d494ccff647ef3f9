"""A secret goes in through every input that may carry one, and comes out nowhere."""

import asyncio
import json
import logging
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.exchanges.recording import recorder
from tasks_app.masking import Line
from tasks_app.models import (
    BatchItem,
    Delivery,
    Event,
    Exchange,
    MemoryEntry,
    Relay,
    Run,
    SlackQuestion,
    Task,
    Webhook,
    Workflow,
)
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.roles import ADMINISTRATOR, AUDITOR
from tasks_app.relays.credentials import StoredCredentials
from tasks_app.slack.identity import Identity
from tasks_app.slack.workspaces import NewWorkspace, add
from tests.conftest import PATIENCE, Person, until
from tests.fuzz.asking import ask
from tests.fuzz.calls import Call
from tests.operators.people import operator, program
from tests.support import agents
from tests.support.commands import text_of
from tests.support.slack_api import BOT, BOT_USER, TEAM, mention, signed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.slow]

CANARY = "canary0f1e2d3c4b5a6978"
JSON = ("Content-Type", "application/json")
ODD_NAMES = (
    *("sessionToken", "session_token", "dbPassword", "secretAccessKey", "accessKey", "webhookSecret", "signingKey"),
    *("x-goog-api-key", "bearerToken", "jwt", "pwd", "otp", "authentication", "clientSecret", "Set-Cookie"),
)
ODD_VALUES = (
    *(f"sk-{CANARY}", f"ghp_{CANARY}", f"AKIA{CANARY.upper()[:16]}", f"Bearer {CANARY}", f"tdk_{CANARY}"),
    *(f"https://me:{CANARY}@example.org/", f"https://example.org/?access_token={CANARY}"),
)
OF_TASKS = (BatchItem, Event, MemoryEntry, Task, Workflow)
"""Tables with the content of tasks, batches, workflows and the memory, which is the caller's own."""
Json = dict[str, Any]
_numbers = count(1)


def rpc(method: str, params: Json, *headers: tuple[str, str], path: str = "/jsonrpc") -> Call:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Call("POST", path, json.dumps(body).encode(), (JSON, *headers))


def message(metadata: Json, agent: str = "echo") -> Json:
    said = {"messageId": f"m{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    return {"message": {**said, "metadata": metadata}, "metadata": {"agent": agent}}


def old_message(metadata: Json) -> Json:
    said = {"kind": "message", "messageId": f"m{next(_numbers)}", "role": "user", "metadata": metadata}
    return said | {"parts": [{"kind": "text", "text": "hello"}]}


def webhook(task_id: str, **more: Any) -> Json:
    secrets = {"token": CANARY, "authentication": {"scheme": "Bearer", "credentials": CANARY}}
    return {"taskId": task_id, "url": f"https://hooks.invalid/{CANARY}?key={CANARY}", **secrets, **more}


def wrong_calls() -> Iterator[Call]:
    """Yield calls whose credentials are wrong, at each place for them."""
    read = {"id": "none"}
    for value in (CANARY, f"tdk_{CANARY}", f"eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.{CANARY}"):
        yield rpc("GetTask", read, ("Authorization", f"Bearer {value}"))
        yield rpc("GetTask", read, ("Authorization", f"Basic {value}"))
        yield rpc("GetTask", read, ("Authorization", ""), ("X-API-Key", value))
        for name in ("key", "api_key", "access_token", "token"):
            yield rpc("GetTask", read, ("Authorization", ""), path=f"/jsonrpc?{name}={value}")
        yield Call("GET", f"/links/x?signature={value}", b"")
        yield Call("GET", f"/files/x/y?signature={value}", b"")
        yield Call("GET", f"/api/v1/tasks/?token={value}", b"", (("Authorization", f"Bearer {value}"),))
    form = ("Content-Type", "application/x-www-form-urlencoded")
    yield Call("POST", "/admin/login/", f"username=ada&password={CANARY}".encode(), (form,))
    yield Call("POST", "/oauth2/token", f"grant_type=client_credentials&client_secret={CANARY}".encode(), (form,))


def right_calls(task_id: str) -> Iterator[Call]:
    """Yield calls of the owner with secrets in them."""
    others = [("Cookie", f"sessionid={CANARY}"), ("Proxy-Authorization", CANARY), ("X-Auth-Token", CANARY)]
    yield rpc("GetTask", {"id": "none"}, *others, path=f"/jsonrpc?access_token={CANARY}")
    for name in ODD_NAMES:
        yield rpc("SendMessage", message({name: CANARY}))
        yield rpc("GetTask", {"id": "none", "metadata": {"deep": [{name: CANARY}]}})
    for value in ODD_VALUES:
        yield rpc("SendMessage", message({"note": value}))
    yield rpc("CreateTaskPushNotificationConfig", webhook(task_id))
    yield rpc("CreateTaskPushNotificationConfig", webhook(task_id, url=f"https://10.0.0.1/{CANARY}"))
    old = {"taskId": task_id, "pushNotificationConfig": {name: webhook("")[name] for name in ("url", "token")}}
    yield rpc("tasks/pushNotificationConfig/set", old)
    inline = {"taskPushNotificationConfig": webhook("")}
    yield rpc("SendMessage", {**message({}), "configuration": inline})
    yield rpc("GetTaskPushNotificationConfig", {"taskId": task_id})
    for agent in ("raises", "quick-raises", "raises-in-a-thread"):
        yield rpc("SendMessage", message({}, agent))
    yield Call("POST", "/jsonrpc", f'{{"jsonrpc":"2.0","password":"{CANARY}'.encode(), (JSON,))


def chat_calls(task_id: str) -> Iterator[Call]:
    """Yield calls of zones and of Slack with secrets, which no answer may have."""
    chat = {"channel": "C1", "text": "hello", "bot_token": CANARY}
    for more in ({}, {"agent": "raises"}, {"agent": "nobody"}, {"wait": False}, {"channel": 7}, {"task_id": task_id}):
        yield rpc("execute_task", chat | more)
    yield rpc("get_task", {"task_id": task_id, "bot_token": CANARY})
    yield Call("POST", "/jsonrpc", f'{{"jsonrpc":"2.0","params":{{"bot_token":"{CANARY}'.encode(), (JSON,))
    event = mention("hello", event_id="Ev1") | {"token": CANARY, "password": CANARY}
    body = json.dumps(event).encode()
    wrong = {"X-Slack-Signature": f"v0={CANARY}", "X-Slack-Request-Timestamp": "1700000000"}
    for headers in ({}, wrong, signed(body, CANARY)):
        others = {name: value for name, value in headers.items() if name != JSON[0]}
        yield Call("POST", "/slack/events", body, (JSON, *others.items()))


def sparc_calls(task_id: str) -> Iterator[Call]:
    """Yield calls of SPARC with secrets in memory, workflows and batches, which only their owner reads again."""
    work, entry = {"workflowId": "w", "phase": "specification"}, {"namespace": "n", "key": "value"}
    for number, name in enumerate(ODD_NAMES):
        secret = {"deep": [{name: CANARY}]}
        items = [{"message": old_message({name: CANARY})}, task_id]
        batch = {"operation": "echo", "tasks": items, "metadata": secret}
        yield rpc("memory/store", entry | {"key": f"k{number}", "data": secret}, path="/sparc")
        yield rpc("sparc/phase/set", work | {"configuration": secret}, path="/sparc")
        yield rpc("batchtools/execute", batch, path="/sparc")
    for value in ODD_VALUES:
        yield rpc("memory/store", entry | {"data": value, "ifVersion": 99}, path="/sparc")
        yield rpc("memory/store", entry | {"data": value}, path="/sparc")
        yield rpc("memory/search", {"namespace": "n", "text": value}, path="/sparc")
        yield rpc("memory/retrieve", entry | {"key": value}, path="/sparc")
        yield rpc("sparc/execute", work | {"message": old_message({"note": value})}, path="/sparc")


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Give the lines of the log as a server writes them."""
    import config.asgi  # noqa: F401  # its setup replaces the handlers of the log

    lines: list[str] = []
    handler = logging.Handler()
    handler.setFormatter(Line("%(name)s %(message)s"))
    handler.emit = lambda record: lines.append(handler.format(record))  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield lines
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def secrets(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the secret where it is in settings, in rows, and in the exceptions of agents."""
    settings.DEV_KEY = settings.LLM_API_KEY = f"tdk_{CANARY}"
    monkeypatch.setattr(agents, "SECRET", f"password={CANARY}")
    settings.A2A_SLACK, settings.A2A_SLACK_SIGNING_SECRET, settings.A2A_SLACK_API = True, CANARY, "http://127.0.0.1:9/"
    identity = Identity(TEAM, "home", BOT_USER, BOT)
    wish = NewWorkspace(bot_token=f"xoxb-{CANARY}", signing_secret=CANARY, principal="slack", agent="echo")
    add(wish, identity, Operator("ada", COMMAND))
    Relay.objects.create(name="far", credentials=StoredCredentials(kind="bearer", secret=CANARY).sealed())


def pages(viewer: Client) -> Iterator[tuple[str, str]]:
    """Yield each page of the admin that the operator may see, but those of tasks."""
    for model in admin.site._registry:
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        yield name, viewer.get(reverse(f"admin:{name}_changelist")).content.decode()
        if model is not Task:
            for pk in model._default_manager.values_list("pk", flat=True):
                yield (
                    f"{name} {pk}",
                    viewer.get(reverse(f"admin:{name}_change", args=[pk]), follow=True).content.decode(),
                )


def exports() -> Iterator[tuple[str, str]]:
    """Yield what commands and the operators' API print."""
    for words in ("exchanges list", "deliveries list", "deliveries webhooks", "tasks list", "a2a keys list"):
        yield words, text_of(*words.split())
    for words in ("a2a relays list", "a2a receivers list", "a2a acts", "a2a processes", "a2a load", "a2a refusals"):
        yield words, text_of(*words.split())
    for words in ("a2a slack list", "a2a slack questions", "a2a usage", "a2a workflows list", "a2a batches list"):
        yield words, text_of(*words.split())
    for exchange in Exchange.objects.all():
        yield f"exchange {exchange.pk}", text_of("exchanges", exchange.pk, "--bodies")
    for delivery in Delivery.objects.all():
        yield f"delivery {delivery.pk}", text_of("deliveries", "show", delivery.pk)
    robot = program(ADMINISTRATOR)
    for resource in RESOURCES:
        yield resource.segment, robot.get(f"{resource.segment}/").content.decode()


def rows() -> Iterator[tuple[str, str]]:
    """Yield each row of the database but the content of tasks."""
    for model in apps.get_models():
        if model not in OF_TASKS:
            for row in model._default_manager.values():
                yield f"row of {model._meta.label}", str(row)


@pytest.mark.requirement("ACP-18", "ZONE-21")
def test_a_secret_goes_in_everywhere_and_comes_out_nowhere(
    service: None, owner: Person, stranger: Person, secrets: None, log: list[str]
) -> None:
    from config.asgi import application

    shown: list[tuple[str, str]] = []
    with asyncio.Runner() as runner:

        def answer(call: Call, person: Person = owner) -> str:
            return runner.run(ask(application, call, person.key)).content.decode(errors="replace")

        made = json.loads(answer(rpc("SendMessage", message({}, "asks"))))
        task_id = made["result"]["task"]["id"]
        shown += [(f"{call.verb} {call.path} {call.headers}", answer(call)) for call in wrong_calls()]
        answers = [answer(call) for call in right_calls(task_id)]
        own = [answer(call) for call in sparc_calls(task_id)]
        assert any(CANARY in text for text in own), "the owner reads a workflow"
        shown += [(f"{call.path} {number}", answer(call)) for number, call in enumerate(chat_calls(task_id))]
        assert any(CANARY in text for text in answers), "the owner reads the address of a webhook"
        assert Webhook.objects.count() >= 2
        assert Run.objects.exclude(traceback="").exists()
        until(lambda: Delivery.objects.filter(attempt__gt=0).exists(), "a delivery is tried")
        for path in (
            "/readyz",
            "/healthz",
            "/openrpc.json",
            "/openapi.json",
            "/.well-known/agent-card.json",
            "/agents/",
        ):
            shown.append((path, answer(Call("GET", path, b""), stranger)))
        for method in ("GetTask", "ListTasks", "ListTaskPushNotificationConfigs"):
            shown.append((method, answer(rpc(method, {"id": task_id, "taskId": task_id}), stranger)))
        shown.append(("memory", answer(rpc("memory/list", {"namespace": "n"}, path="/sparc"), stranger)))
        shown.append(("workflow", answer(rpc("sparc/workflow/get", {"workflowId": "w"}, path="/sparc"), stranger)))
    assert MemoryEntry.objects.count() > len(ODD_NAMES)
    assert SlackQuestion.objects.exists()
    assert recorder.drain(PATIENCE)
    assert log
    viewer = Client()
    viewer.force_login(operator(AUDITOR))
    for place, text in (*shown, *pages(viewer), *exports(), *rows(), *(("log", line) for line in log)):
        for secret in (CANARY, CANARY.upper()[:16], owner.key):
            assert secret not in text, f"{place}: {text[max(0, text.find(secret) - 300) :][:700]}"
