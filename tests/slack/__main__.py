"""A stand-in for Slack to try the front with: python -m tests.slack [PORT of the server]."""

import sys
import time
from itertools import count

import httpx

from tests.support.slack_api import SECRET, TOKEN, Slack, direct, send, slack


def main(port: str = "8000") -> None:
    """Send each line of the input as a question, and print its reply."""
    with slack() as there:
        slack_is = f"A2A_SLACK=true A2A_SLACK_API={there.url}"
        add = ".venv/bin/python manage.py a2a slack add --principal slack"
        print(f"{slack_is} PORT={port} make run")  # noqa: T201
        print(f"printf '{TOKEN}\\n{SECRET}\\n' | {slack_is} {add}")  # noqa: T201
        for number in count(1):
            print("> ", end="", flush=True)  # noqa: T201
            if not (line := sys.stdin.readline()):
                return
            _ask(there, f"http://127.0.0.1:{port}", line.strip(), f"{time.time():.6f}", number)


def _ask(there: Slack, server: str, text: str, ts: str, number: int) -> None:
    try:
        response = send(server, direct(text, event_id=f"Ev{ts}-{number}", ts=ts))
    except httpx.ConnectError:
        print(f"there is no server at {server}: start it with the line above")  # noqa: T201
        return
    if response.status_code != 200:
        print(f"HTTP {response.status_code}: {response.text}")  # noqa: T201
        return
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with there.lock:
            replies = [each["text"] for each in there.messages if each["thread_ts"] == ts]
        if replies and not replies[-1].endswith(" …"):
            print(f"in the thread {ts}: {replies[-1]}")  # noqa: T201
            return
        time.sleep(0.1)
    print("no reply within 60 s")  # noqa: T201


main(*sys.argv[1:2])
