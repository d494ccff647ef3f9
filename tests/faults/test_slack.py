"""kill -9 of a server between a question from Slack and its reply: the question is answered, by one message."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import until
from tests.faults.clients import PATIENCE
from tests.faults.conftest import SHORT, Start, shell
from tests.faults.nodes import Node
from tests.support.slack_api import SECRET, TEAM, TOKEN, Slack, mention, send, slack

pytestmark = pytest.mark.fault
_ADD = f"""
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.slack.identity import Identity
from tasks_app.slack.workspaces import NewWorkspace, add
wish = NewWorkspace(bot_token="{TOKEN}", principal="caller", agent="{{agent}}")
add(wish, Identity("{TEAM}", "Taskdesk", "U0BOT", "B0BOT"), Operator("tests", COMMAND))
"""


@pytest.fixture
def there() -> Iterator[Slack]:
    with slack() as server:
        yield server


def settings(there: Slack, **more: str) -> dict[str, str]:
    return (
        SHORT
        | more
        | {
            "A2A_SLACK": "true",
            "A2A_SLACK_API": there.url,
            "A2A_SLACK_SIGNING_SECRET": SECRET,
            "A2A_SLACK_EDIT_SECONDS": "0.05",
            "A2A_OUTBOUND_LOOPBACK": "true",
        }
    )


async def begin(start: Start, there: Slack, agent: str, **more: str) -> Node:
    node = await start(**settings(there, **more))
    await asyncio.to_thread(shell, node.folder, _ADD.format(agent=agent), **node.settings)
    return node


async def eventually(found: Any, what: str) -> Any:
    return await asyncio.to_thread(until, found, what)


async def states(node: Node) -> list[dict[str, Any]]:
    return await node.lines("a2a", "slack", "questions")


async def test_a_question_outlives_the_process_that_acknowledged_it(start: Start, there: Slack) -> None:
    """The reply begins in one process and ends in the next, in one message, and the agent is called again as its
    attempts allow."""
    node = await begin(start, there, "story")
    words = json.dumps({"pause": 0.05, "words": 1})
    async with asyncio.timeout(PATIENCE):
        response = await asyncio.to_thread(send, node.base, mention(words))
        assert response.status_code == 200
        await eventually(lambda: there.messages, "the first words of the reply")
        node.kill()
        again = await asyncio.to_thread(lambda: there.count("chat.postMessage"))
        await node.start()
        await eventually(lambda: there.texts() and not there.texts()[0].endswith(" …"), "the whole reply")
        assert (await asyncio.to_thread(send, node.base, mention(words))).status_code == 200
    assert (len(there.messages), again, there.count("chat.postMessage")) == (1, 1, 1)
    (row,) = await states(node)
    (task,) = await node.lines("tasks", "list")
    assert (row["state"], row["task_id"], task["state"]) == ("answered", task["id"], "completed")


async def test_a_message_whose_posting_had_no_known_end_is_not_posted_again(start: Start, there: Slack) -> None:
    node = await begin(start, there, "urgent")
    gate = there.gates["chat.postMessage"] = threading.Event()
    async with asyncio.timeout(PATIENCE):
        assert (await asyncio.to_thread(send, node.base, mention("go"))).status_code == 200
        await eventually(lambda: there.messages, "the message, in Slack")
        node.kill()
        gate.set()
        there.gates.clear()
        await node.start()
        await eventually(lambda: there.count("conversations.replies"), "the search")
        await eventually(lambda: there.count("chat.update"), "the edit")
    assert there.texts() == ["done"]
    assert there.count("chat.postMessage") == 1


@pytest.mark.long
async def test_two_processes_answer_an_event_that_both_get_once(start: Start, there: Slack, postgres: str) -> None:
    """One of them is killed then, and the other one takes its questions over."""
    first = await begin(start, there, "story", DATABASE_URL=postgres)
    second = await start("serve", **settings(there, DATABASE_URL=postgres))
    words = json.dumps({"pause": 0.05, "words": 1})
    events = [mention(words, event_id=f"Ev{n}", ts=f"1700000000.{n:06}") for n in range(4)]
    async with asyncio.timeout(PATIENCE):
        sends = [asyncio.to_thread(send, node.base, event) for event in events for node in (first, second)]
        assert {response.status_code for response in await asyncio.gather(*sends)} == {200}
        await eventually(lambda: len(there.messages) == 4, "the first words of all replies")
        first.kill()
        await eventually(lambda: not [text for text in there.texts() if text.endswith(" …")], "all replies")
    assert there.count("chat.postMessage") == len(there.messages) == 4
    rows = await states(second)
    assert [row["state"] for row in rows] == ["answered"] * 4
