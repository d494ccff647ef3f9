"""Questions of people in a chat: each is authorised, limited, executed as a task and recorded like a call.

A front that knows its person as a Caller, such as that of Slack, asks here. The person's agent is called only if the
caller may call it, and has not reached a limit.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

import orjson

from a2a.answers import Answer
from a2a.dialects import zone
from a2a.dialects.json.json_1_0 import event_of, task_of
from a2a.documents import TaskDocument
from a2a.errors import Error, Internal, TaskNotFound, Unavailable
from a2a.events import ArtifactAdded
from a2a.requests import Execute
from a2a.states import QUIET
from a2a.types import Artifact, Json
from tasks_app.audit.refused_calls import COUNTED, refused_calls
from tasks_app.callers.access import Caller, sight
from tasks_app.database.bridge import bridge
from tasks_app.event_log import ReadTask
from tasks_app.event_log.readers import Reader, readers
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.ids import uuid7
from tasks_app.limits.rate_limits import cost_of_send, limits
from tasks_app.masking import MASK
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context, perform
from tasks_app.operations.waiting import RETRY_SECONDS

R = TypeVar("R")
METHOD = "execute_task"
SILENCE = 15.0
"""Seconds after which a reader without news looks again whether the process goes down."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a question: its content in base64, or the address at which the agent finds it."""

    name: str
    mimetype: str = ""
    size: int | None = None
    url: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A message of a person in a chat."""

    channel: str
    text: str
    bot_token: str
    user: str = ""
    thread: str = ""
    correlation_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    team: str = ""
    agent: str = ""
    """The agent that answers; empty for the default."""
    task: str = ""
    """The task that the question continues, because its agent has asked back; empty for a new task."""
    key: str = ""
    """The id of the question. The same question under the same id is executed once."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer so far: its whole text. The last one is final."""

    text: str
    final: bool
    task_id: str


async def ask(question: Question, caller: Caller, *, door: str = "zone") -> AsyncIterator[Reply]:
    """Execute a question, and yield its answer while it grows. The first reply is empty, and says that the task is
    stored; the last one is final.

    Raises the errors of a2a/errors.py: those of a refusal before anything is executed, and those of an execution that
    fails. If the iteration is given up, the execution goes on.
    """
    exchange = await _read(question, _open, question, caller, door)
    try:
        request = await _read(question, _decode, question)
        first = await _begin(request, caller, exchange)
        recorder.open(exchange)
        # The files are stored. An agent may work for hours, and nothing should keep them in memory for so long.
        del question, request
        yield Reply("", False, first.id)
        async for reply in _follow(first, caller):
            yield reply
    except Error as error:
        exchange.end("error", code=zone.LANGUAGE.code(error), status=None)
        exchange.keep(orjson.dumps(zone.LANGUAGE.error(error)))
        raise
    except GeneratorExit:
        exchange.end("left", status=None)
        raise
    except Exception as error:
        exchange.end("error", code=zone.LANGUAGE.code(Internal()), status=None)
        raise Internal(reference=exchange.row.id) from error
    else:
        exchange.end("result", status=None)
    finally:
        recorder.close(exchange)


async def _read(question: Question, function: Callable[..., R], *arguments: object) -> R:
    """Return the result of a function that reads the whole question, off the loop if the question is large: its files
    may have a hundred megabytes."""
    size = len(question.text) + sum(len(item.content) for item in question.attachments)
    return await off_loop(function, *arguments) if size > LARGE else function(*arguments)


def _decode(question: Question) -> Execute:
    """Return the request of a question. Raises InvalidParams."""
    return zone.decode_execute(params_of(question) | {"bot_token": question.bot_token, "wait": False})


def params_of(question: Question) -> Json:
    """Return the params of the call, without its secret."""
    attachments = [
        {name: value for name in Attachment.__slots__ if (value := getattr(item, name)) not in ("", None)}
        for item in question.attachments
    ]
    members = {
        "channel": question.channel,
        "text": question.text,
        "correlation_id": question.correlation_id,
        "thread_ts": question.thread,
        "team_id": question.team,
        "user_id": question.user,
        "attachments": attachments,
        "agent": question.agent,
        "task_id": question.task,
        "idempotency_key": question.key,
    }
    return {name: value for name, value in members.items() if value or name == "text"}


def _open(question: Question, caller: Caller, door: str) -> OpenExchange:
    """Return the record of the question, which has no secret."""
    rpc_id = question.correlation_id or uuid7()
    wire = {"jsonrpc": "2.0", "id": rpc_id, "method": METHOD, "params": params_of(question) | {"bot_token": MASK}}
    exchange = OpenExchange(
        door=door, envelope="jsonrpc", request_id="", rpc_id=rpc_id, request=orjson.dumps(wire), has_status=False
    )
    exchange.row.method, exchange.row.dialect = METHOD, zone.LANGUAGE.name
    exchange.set_caller(caller)
    exchange.is_change = True
    return exchange


async def _begin(request: Execute, caller: Caller, exchange: OpenExchange) -> TaskDocument:
    """Pay for the question, and store its task, or find that of the first question with this key.

    Raises TooManyCalls, and the errors of perform().
    """
    try:
        await limits.spend(caller, cost_of_send(Execute))
        result = await perform(request, Context(caller=caller, exchange=exchange))
    except COUNTED as error:
        refused_calls.count(caller, error.reason, None)
        exchange.is_change = False
        raise
    if not isinstance(result, Answer) or result.task is None:
        raise TypeError("a task of a zone is always stored")
    return result.task


async def _follow(task: TaskDocument, caller: Caller) -> AsyncIterator[Reply]:
    """Yield the text of a task while it grows. Raises the error of a task that fails, TaskNotFound for one that is
    deleted meanwhile, and Unavailable if the process goes down."""
    texts = {artifact.artifact_id: text_of(artifact) for artifact in task_of(task).artifacts}
    async with readers.reader(task.id, task.context_id, task.seq) as reader:
        while task.state not in QUIET:
            await reader.news(SILENCE)
            if readers.draining:
                raise Unavailable(retry_after=RETRY_SECONDS, taskId=task.id)
            state, grew = await _fold(reader, texts)
            if state in QUIET:
                break
            if grew:
                yield Reply("".join(texts.values()), False, task.id)
    yield await _final(task, caller)


async def _fold(reader: Reader, texts: dict[str, str]) -> tuple[str | None, bool]:
    """Add new events to the texts of the artifacts. Return the newest state, and whether a text has changed."""
    state, grew = None, False
    for row in await reader.page():
        state = row.state or state
        if row.kind == "artifactUpdate" and isinstance(event := event_of(row), ArtifactAdded):
            name, text = event.artifact.artifact_id, text_of(event.artifact)
            texts[name] = texts.get(name, "") + text if event.append else text
            grew = True
    return state, grew


def text_of(artifact: Artifact) -> str:
    """Return the text of an artifact."""
    return "".join(part.text or "" for part in artifact.parts)


async def _final(task: TaskDocument, caller: Caller) -> Reply:
    """Return the last reply. Raises the error of a task that has failed."""
    read = await bridge.ask(ReadTask(task_id=task.id, sight=sight(caller, task.id), history=False, is_owed=True))
    if read is None:
        raise TaskNotFound(taskId=task.id)
    answer = Answer(task=read.document, history_length=0)
    if (error := zone.refusal(answer)) is not None:
        raise error
    return Reply(str(zone.outcome_of(read.document)["response_text"]), True, task.id)
