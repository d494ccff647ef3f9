"""Load: wrk for calls, and streams that open together. Both count what was answered and what was wrong."""

import asyncio
import contextlib
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import orjson

from tests.bench.agents import CHUNKS, chunk

SCRIPT = Path(__file__).with_name("load.lua")
TEXT = ("the quick brown fox jumps over the lazy dog " * 6)[:256]
PATIENCE = 30
"""Seconds for the last answers; what has not come by then is lost."""
MARK = "@ID@"
"""Where the id stands in a body."""


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


class Calls(NamedTuple):
    """One call, made again and again."""

    path: str
    expected: str
    """Bytes that every right answer contains."""
    method: str = ""
    """The JSON-RPC method; empty for a GET."""
    params: object = None
    ids: Sequence[str] = ()
    """In place of the mark; made up if there are none."""


def send(agent: str, *, wait: bool, expected: str) -> Calls:
    """Return messages to an agent, each with an id of its own."""
    configuration = {"returnImmediately": not wait, "acceptedOutputModes": ["text/plain"]}
    return Calls(f"/agents/{agent}/jsonrpc", expected, "SendMessage", message() | {"configuration": configuration})


def message(message_id: str = MARK) -> dict[str, object]:
    return {"message": {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": TEXT}]}}


def envelope(method: str, params: object) -> str:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).decode()


def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "A2A-Version": "1.0"}


# --------------------------------------------------------------------- calls


def has_wrk() -> bool:
    return shutil.which("wrk") is not None


def wrk(base: str, key: str, calls: Calls, *, connections: int, seconds: float, most: int = 1 << 30) -> Seen:
    """Load the server for so many seconds, or until so many calls were made."""
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
            *(f"-H{name}: {value}" for name, value in headers(key).items()),
            base + calls.path,
            "--",
            *arguments(calls, seconds, most, ids.name if calls.ids else ""),
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return seen(done.stdout, done.stderr)


def once(base: str, key: str, calls: Calls) -> Seen:
    """Return the call, a single time."""
    body = envelope(calls.method, calls.params).replace(MARK, str(uuid.uuid4()))
    answer = httpx.post(base + calls.path, content=body, headers=headers(key), timeout=PATIENCE + 5, trust_env=False)
    right = answer.status_code == 200 and calls.expected in answer.text
    return Seen(int(right), int(not right), "" if right else answer.text[:300], {})


def arguments(calls: Calls, seconds: float, most: int, ids: str) -> list[str]:
    """Return the arguments of the script."""
    plain = ["POST" if calls.method else "GET", str(seconds), str(most), calls.expected]
    before, _, after = envelope(calls.method, calls.params).partition(MARK)
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
            "p99_ms": said["p99_ms"],
        },
    )


# ------------------------------------------------------------------- streams


class Followed(NamedTuple):
    """When a stream's first and last chunk came, in seconds after the call; or what was wrong."""

    first: float = 0.0
    last: float = 0.0
    wrong: str = ""


def streams(base: str, key: str, agent: str, count: int) -> tuple[Seen, Seen]:
    """Open so many streams at the same moment; return the first chunks and the last ones."""
    try:
        followed = asyncio.run(_burst(base, key, agent, count))
    except OSError as error:
        raise LoadFailed(f"{count} streams could not be opened: {error}") from error
    good = [one for one in followed if not one.wrong]
    example = next((one.wrong for one in followed if one.wrong), "")
    first, last = _spread([one.first for one in good]), _spread([one.last for one in good])
    return Seen(len(good), count - len(good), example, first), Seen(0, 0, "", last)


async def _burst(base: str, key: str, agent: str, count: int) -> list[Followed]:
    where = urlsplit(base)
    opened = await asyncio.gather(*(asyncio.open_connection(where.hostname, where.port) for _ in range(count)))
    try:
        since = time.perf_counter()
        for _, writer in opened:
            body = envelope("SendStreamingMessage", message(str(uuid.uuid4())))
            head = headers(key) | {"Host": where.netloc, "Content-Length": str(len(body))}
            lines = [f"POST /agents/{agent}/jsonrpc HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
            writer.write("\r\n".join([*lines, "", body]).encode())
        return await asyncio.gather(*(_follow(reader, since) for reader, _ in opened))
    finally:
        for _, writer in opened:
            writer.close()


async def _follow(reader: asyncio.StreamReader, since: float) -> Followed:
    """Read until the task has ended. A frame is written whole, so its lines are lines between chunk sizes too."""
    first = last = 0.0
    seen = b""
    with contextlib.suppress(OSError):  # too late, or cut
        async with asyncio.timeout(PATIENCE):
            while line := await reader.readline():
                seen = line if line.strip() else seen
                if b'"artifactUpdate"' in line:
                    first = first or time.perf_counter() - since
                    if chunk(CHUNKS).encode() in line:
                        last = time.perf_counter() - since
                if b"TASK_STATE_COMPLETED" in line:
                    return Followed(first, last) if last else Followed(wrong="it completed without its last chunk")
    return Followed(wrong=f"a stream ended early, after {seen.decode(errors='replace').strip()[:300]}")


def _spread(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    return {"p50_ms": percentile(values, 50) * 1000, "p99_ms": percentile(values, 99) * 1000}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all, in per cent, does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(len(ordered) * share / 100) - 1)]
