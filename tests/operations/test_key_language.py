"""A key pinned to a language: its calls without a version are in that language, if it has their method."""

import asyncio
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import AsyncClient
from django.urls import reverse

from tasks_app.callers.access import new_key
from tasks_app.exchanges.recording import recorder
from tasks_app.models import Act, ApiKey, Exchange
from tests.conftest import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def post(key: str, wire: Any, **headers: str) -> Any:
    async def call() -> Any:
        body = json.dumps(wire).encode()
        headers["authorization"] = f"Bearer {key}"
        return await AsyncClient().post("/jsonrpc", data=body, content_type="application/json", headers=headers)

    return asyncio.run(call())


def listing(method: str = "tasks/list", rpc_id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": {}}


def dialects() -> list[str]:
    assert recorder.drain(PATIENCE)
    return list(Exchange.objects.order_by("id").values_list("dialect", flat=True))


@pytest.mark.usefixtures("service")
def test_a_call_without_a_version_is_in_the_language_of_its_key() -> None:
    pinned, free = new_key("ann", language="a2a-0.2"), new_key("ann")
    assert post(pinned, listing())["A2A-Version"] == "0.2"
    assert post(free, listing())["A2A-Version"] == "0.3"
    assert dialects() == ["a2a-0.2", "a2a-0.3"]


@pytest.mark.usefixtures("service")
def test_a_version_in_the_call_wins_over_the_pin() -> None:
    assert post(new_key("ann", language="a2a-0.2"), listing(), **{"A2A-Version": "0.3"})["A2A-Version"] == "0.3"


@pytest.mark.usefixtures("service")
def test_a_method_that_the_pinned_language_has_not_is_in_another() -> None:
    assert post(new_key("ann", language="a2a-0.2"), listing("ListTasks"))["A2A-Version"] == "1.0"


@pytest.mark.usefixtures("service")
def test_the_members_of_a_batch_are_in_the_language_of_the_key() -> None:
    answer = post(new_key("ann", language="a2a-0.2"), [listing(), listing("nope", 2), listing(rpc_id=3)])
    assert answer["A2A-Version"] == "0.2"
    assert ["result" in member for member in answer.json()] == [True, False, True]
    assert sorted(dialects()) == ["", "a2a-0.2", "a2a-0.2"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "wire",
    [
        listing() | {"id": {}},
        listing() | {"jsonrpc": "1.0"},
        listing("memory/none"),
        [listing("message/send") | {"id": {}}, listing("sparc/phase/set") | {"id": {}}],
    ],
    ids=["a wrong id", "another JSON-RPC", "an unknown method", "a batch"],
)
def test_a_call_that_cannot_be_read_is_refused_in_the_words_of_sparc_for_its_keys(wire: Any) -> None:
    pinned, free = (post(key, wire).json() for key in (new_key("ann", language="sparc"), new_key("ann")))
    for answer in pinned if isinstance(pinned, list) else [pinned]:
        assert {"details", "reason"} <= answer["error"]["data"].keys()
    assert "data" not in (free[0] if isinstance(free, list) else free)["error"]


@pytest.mark.usefixtures("service")
def test_a_pin_to_a_language_that_is_gone_pins_nothing() -> None:
    key = new_key("ann")
    ApiKey.objects.update(language="a2a-9.9")
    assert post(key, listing())["A2A-Version"] == "0.3"


def keys(*words: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("a2a", "keys", *words, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_the_command_pins_a_key_and_writes_it_down() -> None:
    (pinned,) = keys("create", "ann", "--language", "a2a-0.3")
    (free,) = keys("create", "ann")
    assert (pinned["language"], free["language"]) == ("a2a-0.3", None)
    assert [key["language"] for key in keys("list")] == [None, "a2a-0.3"]
    assert [json.loads(act.after)["language"] for act in Act.objects.order_by("id")] == ["a2a-0.3", None]


def test_an_unknown_language_is_named_with_those_that_there_are() -> None:
    languages = r"acp, zone, a2a-1\.0, a2a-0\.3, a2a-0\.2, sparc, vapora\."
    with pytest.raises(CommandError, match=rf"to 'klingon'; the languages are {languages}"):
        keys("create", "ann", "--language", "klingon")
    with pytest.raises(CommandError, match=r"to 'a2a-0\.3-proto'"):
        keys("create", "ann", "--language", "a2a-0.3-proto")
    assert not ApiKey.objects.exists()


def test_the_page_of_a_key_shows_its_language(admin_client: Any) -> None:
    new_key("ann", language="a2a-0.2")
    listed = admin_client.get(reverse("admin:tasks_app_apikey_changelist")).content.decode()
    shown = admin_client.get(reverse("admin:tasks_app_apikey_change", args=[ApiKey.objects.get().pk])).content.decode()
    assert "a2a-0.2" in listed
    assert "a2a-0.2" in shown
