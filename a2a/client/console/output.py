"""The outputs of the command line: text for people, plain lines in a pipe, JSON when asked."""

from typing import Any, TextIO, assert_never

import orjson

from a2a.client.errors import ClientError
from a2a.client.updates import Update, text_of
from a2a.dialects.json.json_1_0 import encode_artifact, encode_message, encode_status, encode_task
from a2a.events import ArtifactAdded, StatusChanged
from a2a.terminals import safe_json, safe_text
from a2a.types import Json, Message, Status, Task


class Output:
    """The two outputs of a command."""

    def __init__(self, out: TextIO, err: TextIO, *, as_json: bool) -> None:
        self._out = out
        self._err = err
        self.as_json = as_json
        self._open = False
        """A line of text has begun and not ended."""

    def line(self, text: str) -> None:
        """Print a line of the result."""
        self._end_line()
        self._out.write(safe_text(text) + "\n")
        self._out.flush()

    def json(self, value: Json) -> None:
        """Print a value as a line of JSON."""
        self._out.write(safe_json(orjson.dumps(value).decode()) + "\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """Report progress, or what went wrong, beside the result."""
        self._end_line()
        self._err.write(safe_text(text) + "\n")
        self._err.flush()

    def error(self, error: ClientError, remedy: str = "") -> None:
        """Report why the command failed, and what its user can do."""
        words = f"{error}. {remedy}" if remedy else str(error)
        self._fault(error.reason, words, code=error.code, retryable=error.retryable)

    def wrong(self, words: str) -> None:
        """Report that the command line is wrong."""
        self._fault("WRONG_USAGE", words, code=None, retryable=False)

    def _fault(self, reason: str, words: str, **facts: Any) -> None:
        if self.as_json:
            self.json({"error": {"reason": reason, "message": words, **facts}})
        else:
            self.note(words)

    def reply(self, reply: Task | Message) -> None:
        """Print a task or a message."""
        if self.as_json:
            self.json({"task": encode_task(reply)} if isinstance(reply, Task) else {"message": encode_message(reply)})
            return
        text = text_of(reply)
        if text:
            self.line(text)
        if isinstance(reply, Task):
            self._state(reply.id, reply.status)

    def update(self, update: Update) -> None:
        """Print one event of a stream: text as it grows, states beside it."""
        if self.as_json:
            self.json(encode_update(update))
            return
        if update.text:
            self._out.write(safe_text(update.text))
            self._out.flush()
            self._open = not update.text.endswith("\n")
        match update.event:
            case Task() as task:
                self._state(task.id, task.status)
            case StatusChanged(status=status):
                self._state(update.task_id, status)
            case Message() | ArtifactAdded():
                pass
            case _:
                assert_never(update.event)

    def _state(self, task_id: str, status: Status) -> None:
        """Report the state of a task, and the agent's message about it."""
        words = f": {status.message.text}" if status.message else ""
        self.note(f"{task_id} {status.state.value}{words}")

    def _end_line(self) -> None:
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False


def encode_update(update: Update) -> Json:
    """Return an event in the JSON of 1.0, with its id."""
    ids: dict[str, Any] = {"taskId": update.task_id, "contextId": update.context_id}
    match update.event:
        case Task() as task:
            wire: Json = {"task": encode_task(task)}
        case Message() as message:
            wire = {"message": encode_message(message)}
        case StatusChanged(status=status):
            wire = {"statusUpdate": ids | {"status": encode_status(status)}}
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last):
            wire = {
                "artifactUpdate": ids | {"artifact": encode_artifact(artifact), "append": append, "lastChunk": last}
            }
        case _:
            assert_never(update.event)
    return wire if update.id is None else {"id": update.id} | wire
