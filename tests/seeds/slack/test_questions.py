"""Questions from Slack to a running server: each goes through verification and execution, and is answered once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx
import pytest

from tests.conftest import Server, running_server, until
from tests.support.slack_api import SECRET, TOKEN, Answer, Slack, mention, send, signed, slack

AGENTS = (
    "echo",
    "asks",
    "conversation",
    "raises",
    "sleeper",
    "rejects",
    "scoped",
    "chatty",
    "files-in-a-thread",
    "nobody",
)
"""The agents that answer the workspaces of these tests, one each."""
_SCRIPT = """
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.rate_limits import set_limit
from tasks_app.slack.identity import Identity
from tasks_app.slack.workspaces import NewWorkspace, add

by = Operator("tests", COMMAND)
for number, agent in enumerate({agents!r} + ("limited",)):
    name = "echo" if agent == "limited" else agent
    wish = NewWorkspace(bot_token="{token}", principal=f"slack-{{agent}}", agent=name)
    add(wish, Identity(f"T0{{number}}", agent, "U0BOT", "B0BOT"), by)
set_limit(by, tenant="default", principal="slack-limited", per_minute=1, burst=10)
set_limit(by, tenant="abroad", principal="stranger", per_minute=1_000_000)
"""
UNSAFE = ("Traceback", "Error", "/", "{", "}", "-32", "-38", "JSON", "task", "_")
"""Parts of texts that no user may read."""


class World(NamedTuple):
    """The server, and the stand-in for Slack."""

    server: Server
    slack: Slack
    numbers: Iterator[int]

    def ask(self, agent: str, text: str, thread: str | None = None, **more: Any) -> str:
        """Ask the agent of a workspace in a channel of its own, and return the thread."""
        number = next(self.numbers)
        ts = f"1700000000.{number:06}"
        payload = mention(text, event_id=f"Ev{number}", ts=ts, thread_ts=thread, channel=channel_of(agent), **more)
        response = send(self.server.url, in_workspace(payload, agent))
        assert response.status_code == 200, response.text
        return thread or ts

    def replies(self, agent: str, thread: str) -> list[str]:
        with self.slack.lock:
            messages = [each for each in self.slack.messages if each["channel"] == channel_of(agent)]
            return [each["text"] for each in messages if each["thread_ts"] == thread]

    def questions(self, thread: str) -> list[dict[str, Any]]:
        """Return the questions of a thread, in their order."""
        names = ("thread", "state", "task_id")
        rows = self.server.rows(f"select {', '.join(names)} from tasks_app_slackquestion order by id")  # noqa: S608
        return [row for values in rows if (row := dict(zip(names, values, strict=True)))["thread"] == thread]

    def state(self, thread: str) -> str:
        """Return the state of the newest question of a thread."""
        rows = self.questions(thread)
        return str(rows[-1]["state"]) if rows else ""

    def tasks(self) -> dict[str, tuple[str, str]]:
        """Return the state and the owner of each task."""
        rows = self.server.rows(
            "select t.id, t.state, p.name from tasks_app_task t join tasks_app_principal p on p.id = t.owner_id"
        )
        return {id: (state, owner) for id, state, owner in rows}

    def answered(self, agent: str, thread: str) -> list[str]:
        """Return the replies of a thread once its newest question is answered."""
        until(lambda: self.state(thread) == "answered", f"the answer of {agent}")
        return self.replies(agent, thread)


def channel_of(agent: str) -> str:
    return f"C0{agent.upper().replace('-', '')}"


def in_workspace(payload: dict[str, Any], agent: str) -> dict[str, Any]:
    team = f"T0{(*AGENTS, 'limited').index(agent)}"
    return payload | {"team_id": team, "authorizations": [{"team_id": team}]}


def are_limits_applied(server: Server) -> bool:
    """Return whether the server has read the limits of the script, all at once. The answers to the stranger tell."""
    get = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "none"}}
    headers = {"Authorization": f"Bearer {server.stranger}"}
    return "RateLimit-Policy" in httpx.post(f"{server.url}/jsonrpc", json=get, headers=headers, timeout=20).headers


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    more = {
        "A2A_SLACK": "true",
        "A2A_SLACK_SIGNING_SECRET": SECRET,
        "A2A_SLACK_EDIT_SECONDS": "0.05",
        "A2A_ADDRESS_FAILURES": "0",
    }
    script = _SCRIPT.format(agents=AGENTS, token=TOKEN)
    with slack() as there:
        folder = tmp_path_factory.mktemp("slack")
        with running_server(folder, script=script, A2A_SLACK_API=there.url, **more) as server:
            yield World(server, there, iter(range(1, 1_000_000)))


@pytest.mark.requirement("ZONE-08")
def test_a_question_is_verified_executed_and_answered_in_its_thread(world: World) -> None:
    thread = world.ask("echo", "good morning")
    assert world.answered("echo", thread) == ["good morning"]
    (question,) = world.questions(thread)
    assert world.tasks()[question["task_id"]] == ("completed", "slack-echo")


def test_a_thread_is_one_conversation(world: World) -> None:
    thread = world.ask("conversation", "my name is Ada")
    world.answered("conversation", thread)
    world.ask("conversation", "what is my name?", thread)
    until(lambda: len(world.replies("conversation", thread)) == 2, "the second reply")
    assert "my name is Ada" in world.answered("conversation", thread)[1]
    other = world.ask("conversation", "who am I?")
    assert "Ada" not in world.answered("conversation", other)[0]


def test_a_message_after_a_question_of_the_agent_is_its_answer(world: World) -> None:
    thread = world.ask("asks", "paint it")
    assert len(world.answered("asks", thread)) == 1
    (first,) = world.questions(thread)
    assert world.tasks()[first["task_id"]][0] == "input_required"
    world.ask("asks", "blue", thread)
    until(lambda: len(world.replies("asks", thread)) == 2, "the second reply")
    world.answered("asks", thread)
    first, second = world.questions(thread)
    assert second["task_id"] == first["task_id"]
    assert world.tasks()[first["task_id"]][0] == "completed"
    world.ask("asks", "now the door", thread)
    until(lambda: len(world.questions(thread)) == 3, "the third question")
    world.answered("asks", thread)
    assert world.questions(thread)[2]["task_id"] != first["task_id"], "a task that has ended is not continued"


@pytest.mark.requirement("ZONE-08")
@pytest.mark.parametrize("agent", ["raises", "sleeper", "rejects", "scoped", "nobody"])
def test_an_error_of_execution_is_one_plain_sentence(world: World, agent: str) -> None:
    thread = world.ask(agent, "please")
    (text,) = world.answered(agent, thread)
    assert not [part for part in UNSAFE if part in text], text
    assert text.endswith(".")


@pytest.mark.requirement("ZONE-14")
def test_a_caller_over_its_limit_is_told_so_and_reaches_no_agent(world: World) -> None:
    until(lambda: are_limits_applied(world.server), "the limits are applied")
    first = world.ask("limited", "one")
    assert world.answered("limited", first) == ["one"]
    second = world.ask("limited", "two")
    (text,) = world.answered("limited", second)
    assert text.startswith("There have been many questions")
    assert [owner for _, owner in world.tasks().values()].count("slack-limited") == 1


def test_an_event_that_comes_many_times_at_once_is_answered_once(world: World) -> None:
    number = next(world.numbers)
    thread = f"1700000000.{number:06}"
    payload = in_workspace(mention("once", event_id=f"Ev{number}", ts=thread, channel=channel_of("echo")), "echo")
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: send(world.server.url, payload), range(8)))
    assert [response.status_code for response in responses] == [200] * 8
    assert world.answered("echo", thread) == ["once"]
    assert len(world.questions(thread)) == 1


def test_a_large_question_needs_no_key(world: World) -> None:
    """Its body is larger than those that strangers may send elsewhere."""
    text = "long words " * 2_500
    thread = world.ask("echo", text)
    assert "".join(world.answered("echo", thread)).replace(" ", "") == text.replace(" ", "")


def test_a_streamed_reply_grows_in_its_message(world: World) -> None:
    thread = world.ask("chatty", "count")
    (text,) = world.answered("chatty", thread)
    assert text.split() == [str(number) for number in range(200)]


def test_files_reach_the_agent_and_the_user_hears_of_those_left_out(world: World) -> None:
    world.slack.files["small.bin"] = bytes(1234)
    files = [
        {
            "name": "small.bin",
            "mimetype": "application/zip",
            "url_private": world.slack.file_url("small.bin"),
            "size": 1234,
        },
        {
            "name": "big.bin",
            "mimetype": "application/zip",
            "url_private": world.slack.file_url("big.bin"),
            "size": 20 * 2**20,
        },
        {"name": "elsewhere.bin", "url_private": "http://127.0.0.2:1/x", "size": 5},
    ]
    thread = world.ask("files-in-a-thread", "look", files=files, subtype="file_share")
    text = "\n".join(world.answered("files-in-a-thread", thread))
    assert text.startswith("1234 bytes")
    assert "big.bin: it has 21.0 MB" in text
    assert "elsewhere.bin: it is not stored in Slack" in text


def test_a_slack_that_is_away_or_busy_gets_the_reply_later(world: World) -> None:
    busy = Answer(429, {"ok": False, "error": "ratelimited"}, (("Retry-After", "1"),))
    world.slack.script["chat.postMessage"] = [Answer(503, {}), busy]
    thread = world.ask("echo", "patience")
    assert world.answered("echo", thread) == ["patience"]


@pytest.mark.requirement("ZONE-21")
def test_no_secret_is_stored_or_logged(world: World) -> None:
    thread = world.ask("echo", "a secret")
    world.answered("echo", thread)
    log = world.server.log.read_text(encoding="utf-8")
    assert TOKEN not in log
    assert SECRET not in log
    tables = ("exchangebody", "event", "task", "slackquestion", "slackworkspace", "act")
    for table in tables:
        dump = str(world.server.rows(f"select * from tasks_app_{table}"))  # noqa: S608
        assert TOKEN not in dump, table
        assert SECRET not in dump, table
    assert set(world.slack.tokens) == {f"Bearer {TOKEN}"}


def test_the_door_takes_no_request_that_slack_did_not_sign(world: World) -> None:
    body = json.dumps(in_workspace(mention("forged", event_id="EvF"), "echo")).encode()
    headers = signed(body, "0" * 32)
    response = httpx.post(f"{world.server.url}/slack/events", content=body, headers=headers, timeout=20)
    assert response.status_code == 401
    large = b'{"type": "event_callback", "text": "' + b"x" * 200_000 + b'"}'
    response = httpx.post(
        f"{world.server.url}/slack/events", content=large, headers=signed(large, "0" * 32), timeout=20
    )
    assert response.status_code == 401
    huge = b" " * 9_000_000
    response = httpx.post(f"{world.server.url}/slack/events", content=huge, headers=signed(huge), timeout=20)
    assert response.status_code == 413
