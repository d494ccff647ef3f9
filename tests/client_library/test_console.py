"""The client on the command line: what it prints, and how it ends."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import call_command

from a2a.client.console import FAILED, OK, REFUSED, TOKEN, UNREACHED, WAITS, main
from config.entry import is_for_the_client
from tests.conftest import Server
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


def test_the_token_may_be_in_a_file(ask: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN)
    file = tmp_path / "token"
    file.write_text(server.owner + "\n")
    assert ask("send", "echo", "hi", "--token-file", str(file))[:2] == (OK, "hi\n")
    code, _, err = ask("send", "echo", "hi", "--token-file", str(tmp_path / "missing"))
    assert (code, "No such file" in err) == (2, True)


def test_an_agent_cannot_write_to_the_terminal_what_is_no_text(ask: Any) -> None:
    assert ask("send", "echo", "a\x1b[31mb\u202ec\td")[1] == "a\ufffd[31mb\ufffdc\td\n"


def test_a_card_is_shown_and_agents_are_listed(ask: Any) -> None:
    code, out, _ = ask("card", "echo", before=("show",))
    assert (code, json.loads(out)["name"]) == (OK, "echo")
    code, _, err = ask("card", "echo", before=("verify",))
    assert (code, "no signatures" in err) == (FAILED, True)
    assert re.search(r"^echo  Says back", ask("agents", "echo")[1], re.MULTILINE)


def test_a_server_is_tried_and_reported(ask: Any) -> None:
    code, out, _ = ask("check", "echo", "--send", "hello")
    assert code == OK
    assert [line[:4] for line in out.splitlines()] == ["ok  "] * len(out.splitlines())
    assert {"JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3"} <= set(re.findall(r"[A-Z+]+ \d\.\d", out))
    code, out, _ = ask("check", "echo", "--json")
    assert all(orjson.loads(line)["ok"] for line in out.splitlines())


def test_the_same_is_a_command_of_the_service(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("a2a", "card", "show", f"{server.url}/agents/echo/")
    assert json.loads(capsys.readouterr().out)["name"] == "echo"
    with pytest.raises(SystemExit) as caught:
        call_command("a2a", "get", f"{server.url}/agents/echo/", "nothing")
    assert caught.value.code == REFUSED


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("send u t", True),
        ("check https://a/", True),
        ("check", False),
        ("check tasks_app", False),
        ("run", False),
        ("", False),
    ],
)
def test_the_installed_command_tells_its_two_halves_apart(line: str, ours: bool) -> None:
    assert is_for_the_client(line.split()) is ours
