"""The client on the command line: what it prints, and how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from a2a.client import SyncClient
from a2a.client.console import FAILED, OK, REFUSED, STOPPED, TOKEN, UNREACHED, UNREAD, USAGE, WAITS, main
from tests.client_library.faulty import faulty, serving
from tests.clients.documents import saved
from tests.conftest import PATIENCE, ROOT, Server
from tests.support.servers import free_port

Ran = tuple[int, str, str]


@pytest.fixture
def ask(server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a verb for an agent; return the exit code and both outputs."""
    monkeypatch.setenv(TOKEN, server.owner)

    def run(verb: str, agent: str, *arguments: str, before: tuple[str, ...] = ()) -> Ran:
        code = main([verb, *before, f"{server.url}/agents/{agent}/", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_message_is_sent_and_its_task_read_listed_and_followed(ask: Any) -> None:
    code, out, err = ask("send", "echo", "hello")
    assert (code, out) == (OK, "hello\n")
    task_id, state = err.split()
    assert state == "completed"
    assert ask("get", "echo", task_id)[:2] == (OK, "hello\n")
    assert ask("tail", "echo", task_id)[:2] == (OK, "hello\n")
    code, out, _ = ask("tail", "echo", task_id, "--after", "1", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1", "2", "3", "4"]
    listed = ask("list", "echo", "--limit", "3")[1].splitlines()
    assert len(listed) <= 3
    assert any(line.startswith(task_id) for line in listed)
    assert json.loads(ask("get", "echo", task_id, "--json")[1])["task"]["id"] == task_id


def test_a_stream_is_printed_as_it_comes(ask: Any) -> None:
    code, out, err = ask("stream", "chatty", "go")
    assert (code, out) == (OK, "".join(f"{number} " for number in range(200)) + "\n")
    assert err.splitlines()[-1].endswith(" completed")
    code, out, err = ask("stream", "echo", "hello", "--json")
    kinds = [set(json.loads(line)) - {"id"} for line in out.splitlines()]
    assert (kinds[0], kinds[-1], err) == ({"task"}, {"statusUpdate"}, "")


def test_each_end_has_its_exit_code(ask: Any, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = ask("send", "asks", "one")
    assert (code, "input_required: Which one?" in err) == (WAITS, True)
    task_id = err.split()[0]
    assert ask("cancel", "asks", task_id)[0] == OK
    assert ask("get", "asks", task_id)[0] == FAILED
    code, _, err = ask("cancel", "asks", task_id)
    assert (code, "Task cannot be canceled" in err) == (REFUSED, True)
    code, out, _ = ask("get", "echo", "nothing", "--json")
    assert (code, json.loads(out)["error"]["reason"]) == (REFUSED, "TASK_NOT_FOUND")
    monkeypatch.setenv(TOKEN, "wrong")
    assert ask("get", "echo", "nothing")[0] == REFUSED
    assert main(["card", "show", f"http://127.0.0.1:{free_port()}/"]) == UNREACHED
    with pytest.raises(SystemExit) as caught:
        main(["send"])
    assert caught.value.code == 2


def test_a_missing_token_is_reported_with_the_place_for_it(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "wrong")
    code, _, err = ask("send", "echo", "hi")
    assert (code, "The token is that of $A2A_TOKEN" in err) == (REFUSED, True)
    monkeypatch.delenv(TOKEN)
    code, _, err = ask("send", "echo", "hi")
    assert (code, "Put a token into $A2A_TOKEN, or use --token-file" in err) == (REFUSED, True)


def test_an_unknown_agent_is_reported(ask: Any) -> None:
    code, _, err = ask("send", "nothing", "hi")
    assert (code, "there is no agent card at this address" in err) == (REFUSED, True)


WRONG = [
    ["get", "nonsense", "t"],
    ["get", "http://[", "t"],
    ["agents", "http://["],
    ["agents", "ftp://127.0.0.1/"],
    ["card", "verify", "http://127.0.0.1:1/", "--keys", __file__],
    ["card", "verify", "http://127.0.0.1:1/", "--keys", "/nowhere"],
]


@pytest.mark.parametrize("line", WRONG, ids=" ".join)
def test_a_wrong_argument_is_reported_at_once(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == USAGE
    assert capsys.readouterr().err.count("\n") == 1
    assert main([*line, "--json"]) == USAGE
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["error"]["retryable"], printed.err) == (False, "")


@pytest.mark.parametrize(
    "options",
    [
        ["get", "u", "t", "--timeout", "0"],
        ["get", "u", "t", "--timeout", "nan"],
        ["get", "u", "t", "--timeout", "x"],
        ["tail", "u", "t", "--after", "-1"],
        ["list", "u", "--limit", "0"],
        ["list", "u", "--limit", "9" * 30],
    ],
    ids=" ".join,
)
def test_a_wrong_number_is_reported(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(options)
    assert caught.value.code == USAGE
    assert "must be a" in capsys.readouterr().err


@pytest.mark.parametrize("page", [{}, [], {"agents": 5}, {"agents": [5]}, {"agents": [{}]}])
async def test_a_catalogue_of_another_kind_is_not_taken_for_ours(page: Any, capsys: pytest.CaptureFixture[str]) -> None:
    card = {"name": "n", "supportedInterfaces": [], "skills": [{"id": "greet", "description": "Greets"}]}
    async with faulty(serving({"/agents/": page, "/.well-known/agent-card.json": card})) as server:
        assert await asyncio.to_thread(main, ["agents", server.url]) == OK
    assert capsys.readouterr().out == "greet  Greets\n"


# ------------------------------------------------------------ real processes


_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from config.entry import main
main()
"""
"""The command as a terminal starts it. A shell's job in the background ignores Ctrl-C, and so would its children."""


@contextmanager
def streaming(server: Server, agent: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a command that has printed the first event of a stream. Its task is canceled at the end."""
    url = f"{server.url}/agents/{agent}/"
    program = [sys.executable, "-c", _PROGRAM, "stream", url, "Hi", "--json"]
    environment = os.environ | {TOKEN: server.owner}
    with subprocess.Popen(
        program, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        task_id = orjson.loads(process.stdout.readline())["task"]["id"]
        try:
            yield process
        finally:
            process.kill()
            with SyncClient(url, token=server.owner) as client:
                client.cancel_task(task_id)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Return the exit code and the error output."""
    assert process.stderr
    return process.wait(PATIENCE), process.stderr.read()


def test_a_reader_that_leaves_ends_the_command_quietly(server: Server) -> None:
    with streaming(server, "waits-in-a-thread") as process:
        assert process.stdout
        process.stdout.close()
        assert ended(process) == (UNREAD, b"")


def test_a_reader_that_leaves_ends_the_program_of_the_page_quietly(server: Server, tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(saved(ROOT, "ask.py"), encoding="utf-8")
    program = [sys.executable, str(tmp_path / "ask.py"), f"{server.url}/agents/story/"]
    environment = os.environ | {"KEY": server.owner, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.close()  # Before it has anything to print, so that its first text meets a closed pipe.
        assert ended(process) == (UNREAD, b"")


def test_ctrl_c_ends_the_command_quietly(server: Server) -> None:
    with streaming(server, "waits") as process:
        process.send_signal(signal.SIGINT)
        assert ended(process) == (STOPPED, b"")
