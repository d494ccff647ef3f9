"""The door for events of Slack: signatures, challenges, and events that come twice."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.exchanges.recording import recorder
from tasks_app.models import AuditEntry, Exchange, ExchangeBody, SlackQuestion, SlackWorkspace
from tasks_app.operators.audit import Operator
from tasks_app.slack import arrivals, extra, workspaces
from tests.conftest import PATIENCE
from tests.slack.conftest import OPERATOR, Front, add_workspace
from tests.support.slack_api import (
    BOT,
    BOT_USER,
    SECRET,
    TEAM,
    TOKEN,
    USER,
    Json,
    callback,
    direct,
    mention,
    signed,
)

pytestmark = [pytest.mark.storage]
CHALLENGE = {
    "type": "url_verification",
    "token": "legacy",
    "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
}


def send(front: Front, payload: Json, headers: dict[str, str] | None = None) -> Any:
    return asyncio.run(front.send(payload, headers))


def test_the_challenge_of_a_new_address_is_answered(front: Front) -> None:
    response = send(front, CHALLENGE)
    assert response.status_code == 200
    assert response.json() == {"challenge": CHALLENGE["challenge"]}


def test_the_challenge_is_signed_with_the_secret_of_the_settings_too(front: Front, settings: Any) -> None:
    settings.A2A_SLACK_SIGNING_SECRET = "ffffffffffffffffffffffffffffffff"
    body = json.dumps(CHALLENGE).encode()
    response = asyncio.run(front.post(body, signed(body, settings.A2A_SLACK_SIGNING_SECRET)))
    assert response.status_code == 200


@pytest.mark.parametrize("headers", [{}, {"X-Slack-Signature": "v0=" + "0" * 64}], ids=["signed", "not signed"])
def test_a_large_challenge_is_refused_before_any_secret_is_tried(front: Front, headers: dict[str, str]) -> None:
    assert send(front, CHALLENGE | {"challenge": "x" * 16_384}, headers).status_code == 413


@pytest.mark.parametrize(
    "change",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": "v0=\u00e4"},
        {"X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "yesterday"},
        {"X-Slack-Request-Timestamp": "9" * 400},
    ],
)
def test_a_request_that_slack_did_not_sign_is_refused(front: Front, change: dict[str, str]) -> None:
    response = send(front, mention(), change)
    assert response.status_code == 401
    assert not front.questions()


def test_a_changed_body_is_refused(front: Front) -> None:
    body = json.dumps(mention()).encode()
    assert asyncio.run(front.post(body.replace(b"hello", b"hullo"), signed(body))).status_code == 401


@pytest.mark.parametrize("seconds", [-310, 310])
def test_a_request_of_another_time_is_refused(front: Front, seconds: int) -> None:
    body = json.dumps(mention()).encode()
    headers = signed(body, at=clock.now().timestamp() + seconds)
    assert asyncio.run(front.post(body, headers)).status_code == 401


def test_the_secret_of_one_workspace_opens_no_other(front: Front) -> None:
    add_workspace("T0OTHER", signing_secret="ffffffffffffffffffffffffffffffff", principal="other")
    payload = mention() | {"team_id": "T0OTHER", "authorizations": [{"team_id": "T0OTHER"}]}
    assert send(front, payload).status_code == 401


def test_an_unknown_workspace_is_refused_like_a_wrong_signature(front: Front) -> None:
    payload = mention() | {"team_id": "T0NOBODY", "authorizations": []}
    unknown = send(front, payload)
    wrong = send(front, mention(), {"X-Slack-Signature": "v0=" + "0" * 64})
    assert unknown.status_code == wrong.status_code == 401
    assert unknown.json()["error"]["message"] == wrong.json()["error"]["message"]


def test_an_address_with_many_wrong_signatures_gets_no_further(front: Front, settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 3
    wrong = {"X-Slack-Signature": "v0=" + "0" * 64}
    assert [send(front, mention(), wrong).status_code for _ in range(5)][-1] == 429
    assert send(front, mention()).status_code == 200, "Slack itself is taken all the same"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff"])
def test_a_body_that_is_no_event_is_refused(front: Front, body: bytes) -> None:
    assert asyncio.run(front.post(body, signed(b""))).status_code in {400, 415}


@pytest.mark.parametrize(
    ("payload", "member"),
    [
        ({"type": "event_callback", "team_id": TEAM}, "event"),
        (mention() | {"event": "hello"}, "event"),
        (mention(type=None), "event.type"),
        (mention(user=["U0ASKER"]), "event.user"),
        (mention(channel={"id": "C0GENERAL"}), "event.channel"),
        (callback({"type": "app_mention", "text": 5}, "Ev1"), "event.text"),
        (mention(files={"name": "a"}), "event.files"),
        (direct(files=["a"]), "event.files[0]"),
        (direct(subtype=["file_share"]), "event.subtype"),
        (CHALLENGE | {"challenge": None}, "challenge"),
    ],
)
def test_a_malformed_event_is_refused_by_the_name_of_its_member(
    front: Front, payload: Json, member: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = send(front, payload)
    assert response.status_code == 400
    assert f"{member} " in response.content.decode()
    assert not [record for record in caplog.records if record.exc_info]
    assert not front.questions()


@pytest.mark.parametrize("name", ["authorizations", "team", "enterprise", "user", "view", "channel", "response_urls"])
def test_a_member_that_is_not_read_may_have_any_value(front: Front, name: str) -> None:
    payload = mention() | {"is_ext_shared_channel": True, name: 5}
    assert send(front, payload).status_code == 200
    assert front.questions()


def test_an_event_that_is_no_message_may_have_any_members(front: Front) -> None:
    event = {"type": "team_join", "user": {"id": USER}, "team": 5, "files": 5}
    assert send(front, callback(event, "Ev1")).status_code == 200


def test_the_size_of_a_file_may_be_any_number(front: Front) -> None:
    assert send(front, direct(files=[{"name": "a", "size": 10**40}])).status_code == 200
    assert front.questions()


def test_an_event_that_comes_again_is_one_question(front: Front) -> None:
    """Slack sends an event again, with a header, when it got no answer in time; and others may copy a request."""
    again = {"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_timeout"}
    statuses = [send(front, mention()).status_code, send(front, mention(), again).status_code]
    asyncio.run(front.answer())
    statuses.append(send(front, mention(), again).status_code)
    asyncio.run(front.answer())
    assert statuses == [200] * 3
    assert len(front.questions()) == len(front.slack.messages) == 1


def test_a_question_has_an_entry_of_the_audit_and_one_that_comes_again_has_none(front: Front) -> None:
    for event_id in ("Ev1", "Ev1", "Ev2"):
        assert send(front, mention(event_id=event_id)).status_code == 200
    send(front, CHALLENGE)
    assert recorder.drain(PATIENCE)
    entries = AuditEntry.objects.order_by("id").values_list("door", "method", "outcome")
    assert list(entries) == [("slack", "slack/events/app_mention", "result")] * AuditEntry.objects.count()
    assert AuditEntry.objects.count() == len(front.questions())


def test_two_events_of_one_message_are_one_question(front: Front) -> None:
    front.ask(mention(event_id="Ev1"), mention(event_id="Ev2"))
    assert len(front.questions()) == len(front.slack.messages) == 1


def test_an_event_that_comes_at_the_same_time_in_many_threads_is_one_question(front: Front) -> None:
    home, barrier = workspaces.find(front.workspace.team_id), threading.Barrier(4)
    assert home is not None
    arrival = arrivals.Arrival(
        event_id="Ev1", kind="app_mention", channel="C1", thread="1.1", ts="1.1", user=USER, text="hi"
    )

    def store(_: int) -> str | None:
        barrier.wait(PATIENCE)
        return asyncio.run(arrivals.store(arrival, home))

    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(store, range(4)))
    assert len([id for id in ids if id]) == 1
    assert SlackQuestion.objects.count() == 1


@pytest.mark.parametrize(
    "payload",
    [
        mention(user=BOT_USER),
        mention(bot_id=BOT, user="U0OTHER"),
        mention(bot_id="B0OTHERBOT"),
        direct(subtype="bot_message", user=None),
        direct(subtype="message_changed"),
        direct(subtype="channel_join"),
        direct(channel_type="channel"),
        direct(user="USLACKBOT"),
        direct(ts=None),
        direct(channel="C1 or 1=1"),
        mention(user_team="T0ELSEWHERE"),
        callback({"type": "reaction_added", "user": USER}, "Ev1"),
        callback({"type": "app_home_opened", "user": USER, "channel": "D1"}, "Ev1"),
        mention() | {"event_id": None},
    ],
)
def test_events_that_are_no_questions_are_acknowledged_and_dropped(front: Front, payload: Json) -> None:
    assert send(front, payload).status_code == 200
    assert not front.questions()


def test_an_event_of_another_kind_is_acknowledged(front: Front) -> None:
    assert send(front, {"type": "app_rate_limited", "team_id": front.workspace.team_id}).status_code == 200


def test_a_user_of_another_workspace_may_ask_if_mapped(front: Front) -> None:
    workspaces.map_user(front.workspace, USER, "guest", "abroad", OPERATOR)
    front.ask(mention(user_team="T0ELSEWHERE"))
    (turn, _), (row,) = front.zone.asked[0], front.questions()
    assert (turn.caller.name, turn.caller.tenant, row.tenant.name) == ("guest", "abroad", "abroad")


def test_a_disabled_workspace_is_refused_and_its_questions_rest(front: Front) -> None:
    send(front, mention())
    assert workspaces.disable(front.workspace, Operator("tests", "command"))
    assert send(front, mention(event_id="Ev2", ts="1700000000.000200")).status_code == 401
    asyncio.run(front.answer())
    assert not front.slack.messages
    workspaces.enable(front.workspace, OPERATOR)
    asyncio.run(front.answer())
    assert len(front.slack.messages) == 1


def test_a_database_that_is_away_has_slack_send_the_event_again(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.db import OperationalError

    def away(*_: Any) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(arrivals, "_store", away)
    response = send(front, mention())
    assert response.status_code == 503
    assert response["Retry-After"]
    monkeypatch.undo()


def test_the_front_is_not_found_unless_it_is_on(front: Front, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra, "is_installed", lambda: False)
    assert send(front, mention()).status_code == 404
    assert "slack-bolt is not installed" in extra.find_problem()
    monkeypatch.undo()
    assert extra.find_problem() == ""
    settings.A2A_SLACK = False
    assert send(front, mention()).status_code == 404


def test_other_verbs_and_media_are_refused(front: Front) -> None:
    from django.test import AsyncClient

    async def story() -> list[int]:
        get: Any = await AsyncClient().get("/slack/events")
        form: Any = await AsyncClient().post("/slack/events", {"payload": "x"})
        return [get.status_code, form.status_code]

    assert asyncio.run(story()) == [405, 415]


@pytest.mark.requirement("ZONE-18", "ZONE-21")
def test_an_event_is_recorded_without_secrets_and_a_refused_one_without_content(front: Front) -> None:
    secret = "xoxb-9999999999-secretsecret"
    assert send(front, mention(f"my token is {secret}")).status_code == 200
    assert send(front, mention("never stored"), {"X-Slack-Signature": "v0=" + "0" * 64}).status_code == 401
    assert recorder.drain(PATIENCE)
    rows = {row.http_status: row for row in Exchange.objects.filter(door="slack")}
    assert (rows[200].method, rows[200].rpc_id, rows[200].outcome) == ("slack/events/app_mention", "Ev1", "result")
    assert rows[200].caller is not None
    assert rows[200].caller.name == "slack"
    bodies = "".join(f"{row.request}{row.response}" for row in ExchangeBody.objects.all())
    assert "my token is" in bodies
    for text in (secret, "legacy-verification-token", "never stored", TOKEN, SECRET):
        assert text not in bodies


@pytest.mark.requirement("ZONE-21")
def test_the_secrets_of_a_workspace_are_sealed(front: Front) -> None:
    row = SlackWorkspace.objects.get()
    assert TOKEN not in row.bot_token
    assert SECRET not in row.signing_secret
    assert TOKEN not in str(workspaces.describe(row))
