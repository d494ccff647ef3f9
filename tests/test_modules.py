"""Modules of the service and of its tests: how long they are, who lays them out, and what tests import."""

import re

from tests.conftest import ROOT

MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in ("a2a", "config", "tasks_app", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
MOST_LINES = 400


def test_no_module_has_more_than_400_lines() -> None:
    lengths = {name: len(text.splitlines()) for name, text in MODULES.items()}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_the_formatter_lays_out_every_line_of_tests() -> None:
    exempt = [name for name, text in MODULES.items() if name.startswith("tests/") and re.search(r"# fmt: \w", text)]
    assert exempt == []


def test_a_test_module_imports_no_other() -> None:
    """Helpers are in modules of their own. A toy is one file, and another toy may speak through it."""
    imports = {
        name: re.findall(r"^\s*from (tests\.(?:\w+\.)*test_(?!toy_)\w+) import", text, re.MULTILINE)
        for name, text in MODULES.items()
    }
    assert {name: modules for name, modules in imports.items() if modules} == {}
