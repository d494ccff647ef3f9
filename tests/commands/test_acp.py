"""`manage.py a2a acp`: the schema of ACP, and files that are checked."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from django.core.management import CommandError, call_command

from a2a.dialects.acp.language import LANGUAGE

pytestmark = pytest.mark.requirement("ACP-26")
GET: dict[str, Any] = {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "t"}, "id": 1}


def test_the_schema_is_valid_and_takes_each_request(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("a2a", "acp", "schema")
    schema = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert {f"{name}.request" for name in LANGUAGE.methods} < schema["$defs"].keys()
    assert validator.is_valid(GET)
    assert validator.is_valid({"jsonrpc": "2.0", "id": 1, "error": {"code": -40001, "message": "m", "data": {}}})
    for wrong in (GET | {"extra": 1}, GET | {"method": "tasks.paint"}, GET | {"params": {}}, {"jsonrpc": "2.0"}):
        assert not validator.is_valid(wrong)


def test_a_good_file_has_no_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(GET))
    call_command("a2a", "acp", "request", str(file))
    assert capsys.readouterr().out == f"{file}: no faults\n"


def test_every_fault_of_a_file_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "card.json"
    file.write_text('{"name": "n", "description": "d", "version": "1", "url": "https://x", "provider": {}}')
    with pytest.raises(CommandError, match="has faults, 2 in all") as refusal:
        call_command("a2a", "acp", "card", str(file))
    assert refusal.value.returncode == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["version", "provider.organization"]


@pytest.mark.parametrize("text", [None, "[", ""], ids=str)
def test_a_file_that_cannot_be_read_is_another_exit_code(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "card.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CommandError, match="cannot be read" if text is None else "is not JSON") as refusal:
        call_command("a2a", "acp", "card", str(file))
    assert refusal.value.returncode == 2
