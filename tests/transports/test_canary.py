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
from tasks_app.models import Delivery, Event, Exchange, Relay, Run, Task, Webhook
from tasks_app.operators.roles import ADMINISTRATOR, AUDITOR
from tasks_app.relays.credentials import StoredCredentials
from tests.conftest import PATIENCE, Person, until
from tests.fuzz.asking import ask
from tests.fuzz.calls import Call
from tests.operators.people import operator, program
from tests.support import agents
from tests.support.commands import text_of

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
OF_TASKS = (Event, Task)
"""Tables with the content of tasks, which is the caller's own."""
Json = dict[str, Any]
_numbers = count(1)


def rpc(method: str, params: Json, *headers: tuple[str, str], path: str = "/jsonrpc") -> Call:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Call("POST", path, json.dumps(body).encode(), (JSON, *headers))


def message(metadata: Json, agent: str = "echo") -> Json:
    said = {"messageId": f"m{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    return {"message": {**said, "metadata": metadata}, "metadata": {"agent": agent}}


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
    assert recorder.drain(PATIENCE)
    assert log
    viewer = Client()
    viewer.force_login(operator(AUDITOR))
    for place, text in (*shown, *pages(viewer), *exports(), *rows(), *(("log", line) for line in log)):
        for secret in (CANARY, CANARY.upper()[:16], owner.key):
            assert secret not in text, f"{place}: {text[max(0, text.find(secret) - 300) :][:700]}"
