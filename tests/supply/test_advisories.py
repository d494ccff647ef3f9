"""The answer of the check for vulnerabilities: what was not checked is never called safe."""

import sys
from pathlib import Path

import orjson
import pytest

from tests.supply.__main__ import UNCHECKED, VULNERABLE, Advisory, Report, ask, best, conclude, main, read

SAFE = {"name": "orjson", "version": "3.13.0", "vulns": []}
BAD = {"name": "jinja2", "version": "2.4.1", "vulns": [{"id": "PYSEC-2014-8", "fix_versions": ["2.7.3"]}]}
AWAY = {"name": "uv", "skip_reason": "Dependency not found on PyPI and could not be audited: uv (0.13.8)"}


def output(*packages: dict[str, object]) -> bytes:
    return orjson.dumps({"dependencies": packages, "fixes": []})


def test_a_package_without_an_answer_is_not_called_safe() -> None:
    code, lines = conclude({"a.lock": read(output(SAFE)), "b.lock": read(output(SAFE, AWAY))})
    assert code == UNCHECKED
    assert any(line.startswith("NOT CHECKED in b.lock: 1, such as uv: ") for line in lines)
    assert "No known vulnerabilities." not in lines


def test_a_vulnerable_package_is_named_with_its_remedy() -> None:
    code, lines = conclude({"a.lock": read(output(SAFE, BAD, AWAY)), "b.lock": read(output(BAD))})
    assert code == VULNERABLE
    assert [line for line in lines if line.startswith("VULNERABLE")] == [
        "VULNERABLE: jinja2 2.4.1: PYSEC-2014-8, fixed in 2.7.3"
    ]


def test_all_is_well_only_if_each_package_was_checked() -> None:
    assert conclude({"a.lock": read(output(SAFE))}) == (0, ["a.lock: 1 packages checked", "No known vulnerabilities."])


def test_the_database_that_knows_most_is_believed() -> None:
    none, some, full = read(output(AWAY)), read(output(SAFE, AWAY)), read(output(SAFE, BAD))
    assert best([none, full, some]) is full
    assert best([none, some, none]) is some
    assert best([none]) is none
    assert full.advisories == {Advisory("jinja2", "2.4.1", "PYSEC-2014-8", ("2.7.3",))}


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """Return the file of a pip-audit that fails like the real one without a network."""
    program = tmp_path / "bin" / "pip-audit"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nraise SystemExit('no such host')\n")
    program.chmod(0o755)
    return program


def test_a_tool_that_fails_has_checked_nothing(tool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(str(tmp_path), "pypi", "a.lock") == Report(frozenset(), {"all of a.lock": "no such host"}, frozenset())
    assert main([str(tmp_path), "a.lock"]) == UNCHECKED
    assert "NOT CHECKED in a.lock" in capsys.readouterr().out
