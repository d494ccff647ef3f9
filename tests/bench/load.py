"""Load for calls, made by wrk. It counts what was answered and what was wrong; streams.py does so for streams."""

import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import NamedTuple

import httpx
import orjson

SCRIPT, FLOOD = Path(__file__).with_name("load.lua"), Path(__file__).with_name("flood.lua")
FLOOD_SECONDS = 0.5
"""Seconds of a flood before anything is measured beside it."""
TEXT = ("the quick brown fox jumps over the lazy dog " * 6)[:256]
PATIENCE = 30
"""Seconds for the last answers; what has not come by then is lost."""
COMPLETED = "TASK_STATE_COMPLETED"
DIGITS = 12
"""Digits of the number in each credential of a flood."""
MARK = "@ID@"
"""Where the id stands in a body."""
NUMBER = "@NUMBER@"
"""Where the id stands in a body if it is a number."""


class LoadFailed(Exception):
    """The load could not be made; the message says what wrk said."""


class Seen(NamedTuple):
    """Result of a load."""

    answers: int
    errors: int
    """Wrong answers, no answers, broken connections."""
    example: str
    """The first of them."""
    values: dict[str, float]


class Line(NamedTuple):
    """One measurement of one thing."""

    label: str
    values: dict[str, float]
    errors: int = 0
    example: str = ""


class Calls(NamedTuple):
    """One call, made again and again."""

    path: str
    expected: str
    """Bytes that every right answer contains."""
    method: str = ""
    """The JSON-RPC method; empty for a GET."""
    params: object = None
    ids: Sequence[str] = ()
    """In place of the mark; made up if there are none, which are texts."""
    headers: Mapping[str, str] = {}
    """Headers besides those of every call."""


def send(agent: str, *, wait: bool, expected: str) -> Calls:
    """Return messages to an agent, each with an id of its own."""
    configuration = {"returnImmediately": not wait, "acceptedOutputModes": ["text/plain"]}
    return Calls(f"/agents/{agent}/jsonrpc", expected, "SendMessage", message() | {"configuration": configuration})


def message(message_id: str = MARK) -> dict[str, object]:
    return {"message": {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": TEXT}]}}


OLD_MESSAGE = {"kind": "message", "messageId": MARK, "role": "user", "parts": [{"kind": "text", "text": TEXT}]}
SENDS = {
    "VAPORA": Calls(
        "/agents/bench-quick/a2a",
        '"completed"',
        "message/send",
        {"message": OLD_MESSAGE, "configuration": {"acceptedOutputModes": ["text/plain"]}},
        headers={"A2A-Version": "0.3"},
    ),
    "ACP": Calls(
        "/agents/bench-queued/jsonrpc",
        '"task"',
        "tasks.create",
        {"initialMessage": {"role": "user", "parts": [{"type": "TextPart", "content": TEXT}]}},
    ),
    "zones": Calls(
        "/agents/bench-queued/jsonrpc",
        '"success"',
        "execute_task",
        {"channel": "C1", "text": TEXT, "bot_token": "xoxb-bench", "idempotency_key": MARK},
    ),
    "SPARC": Calls(
        "/agents/bench-quick/sparc",
        '"completed"',
        "message/send",
        {"message": OLD_MESSAGE, "configuration": {"acceptedOutputModes": ["text/plain"]}},
        headers={"A2A-Version": "0.2"},
    ),
}
"""A send in each language that is compared with A2A 1.0. ACP answers before the agent runs; zones queue each task."""


def envelope(method: str, params: object) -> str:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).decode()


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "A2A-Version": "1.0"}


# --------------------------------------------------------------------- calls


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


def wrk(
    base: str, key: str, calls: Calls, *, connections: int, seconds: float, most: int = 1 << 30, rate: float = 0
) -> Seen:
    """Load the server for so many seconds, or until so many calls were made: at an even rate a second, or without one
    each connection sends its next call at once."""
    with tempfile.NamedTemporaryFile("w", prefix="taskdesk-ids-", suffix=".txt") as ids:
        ids.write("\n".join(calls.ids))
        ids.flush()
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{ceil(seconds) + PATIENCE}s",
            f"--timeout={PATIENCE}s",
            f"--script={SCRIPT}",
            *(f"-H{name}: {value}" for name, value in (headers(key) | dict(calls.headers)).items()),
            base + calls.path,
            "--",
            *arguments(calls, seconds, most, ids.name if calls.ids else "", rate),
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return seen(done.stdout, done.stderr)


class Flood(NamedTuple):
    """A flood of wrong credentials, each of which has another number, of DIGITS digits."""

    per_second: int
    before: str
    """The part of a credential before its number."""
    after: str = ""
    addresses: int = 1
    """The addresses from which it comes in turn. They are those that a trusted proxy would add."""
    path: str = "/jsonrpc"


@contextmanager
def flooded(base: str, flood: Flood) -> Iterator[None]:
    """Send the flood while the block lasts. Raises LoadFailed if an answer is not a refusal."""
    command = ["wrk", "-t1", "-c25", "-d1h", f"--script={FLOOD}", f"{base}{flood.path}", "--", str(flood.per_second)]
    body = envelope("GetTask", {"id": "none"})
    more = [str(flood.addresses), body, flood.before, flood.after]
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True) as process:
        try:
            time.sleep(FLOOD_SECONDS)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=PATIENCE)
    found = re.search(r"^FLOOD refused=(\d+) other=(\d+)$", output, re.MULTILINE)
    if found is None or not int(found[1]) or int(found[2]):
        raise LoadFailed(f"a flood of wrong credentials was not refused:\n{output}")


def once(base: str, key: str, calls: Calls) -> Seen:
    """Return the call, a single time."""
    body = envelope(calls.method, calls.params).replace(MARK, str(uuid.uuid4()))
    answer = httpx.post(base + calls.path, content=body, headers=headers(key), timeout=PATIENCE + 5, trust_env=False)
    right = answer.status_code == 200 and calls.expected in answer.text
    return Seen(int(right), int(not right), "" if right else answer.text[:300], {})


def arguments(calls: Calls, seconds: float, most: int, ids: str, rate: float = 0) -> list[str]:
    """Return the arguments of the script."""
    plain = ["POST" if calls.method else "GET", str(seconds), str(most), str(rate), calls.expected]
    before, _, after = envelope(calls.method, calls.params).replace(f'"{NUMBER}"', MARK).partition(MARK)
    return [*plain, str(uuid.uuid4())[:24], before, after, ids] if calls.method else plain


def seen(output: str, complaint: str = "") -> Seen:
    """Read the script's last lines. Raises LoadFailed if they are not there."""
    found = re.search(r"^BENCH (.*)$", output, re.MULTILINE)
    if found is None:
        raise LoadFailed(f"wrk did not measure:\n{output}{complaint}".strip())
    said = {name: float(value) for name, value in (pair.split("=") for pair in found[1].split())}
    unanswered = int(said["sent"] - said["answered"])
    example = re.search(r"^EXAMPLE (.+)$", output, re.MULTILINE)
    return Seen(
        answers=int(said["answered"] - said["wrong"]),
        errors=int(said["wrong"]) + max(unanswered, int(said["lost"])),
        example=example[1] if example else f"{unanswered} calls were not answered" if unanswered else "",
        values={
            "per_second": said["answered"] / said["seconds"] if said["seconds"] > 0 else 0.0,
            "p50_ms": said["p50_ms"],
            "p95_ms": said["p95_ms"],
            "p99_ms": said["p99_ms"],
        },
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all, in per cent, does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share / 100) - 1)]
