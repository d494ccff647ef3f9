"""Modules that define agents: what is wrong with one is a sentence with file and line."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from a2a.agents import registry
from a2a.definitions import AgentDefinitionError
from tasks_app.discovery import discover, import_agents

AGENT = """from a2a import Run, agent

@agent
def {name}(run: Run) -> str:
    "Says what it is told."
    return run.text
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module that can be imported; return its file."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(registry.names())

    def write(name: str, *lines: str) -> Path:
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    yield write
    for name in set(registry.names()) - before:
        registry._agents.pop(name)


def refusal(module: str) -> str:
    with pytest.raises(ImproperlyConfigured) as refused:
        import_agents(module)
    return str(refused.value)


def test_an_import_of_what_is_not_there_is_named_with_its_line(write: Write) -> None:
    file = write("asks_for_more", "from a2a import agent", "", "import no_such_package")
    said = "the import ended with ModuleNotFoundError: No module named 'no_such_package'"
    remedy = "if it is a package, list it in requirements-agents.txt and run make install"
    assert refusal("asks_for_more") == f"{file}:3: {said}; {remedy}"


def test_an_error_in_a_library_is_named_with_the_authors_line_and_its_own(write: Write) -> None:
    file = write("reads_badly", "import json", 'json.loads("{")')
    sentence = refusal("reads_badly")
    assert sentence.startswith(f"{file}:2: the import ended with JSONDecodeError: ")
    assert "decoder.py:" in sentence.partition(" (raised at ")[2]


def test_an_error_in_another_file_of_the_author_is_named_with_that(write: Write) -> None:
    write("calls_another", "from the_other import divide", "divide()")
    file = write("the_other", "def divide():", "    return 1 / 0")
    assert refusal("calls_another") == f"{file}:2: the import ended with ZeroDivisionError: division by zero"


def test_a_line_that_is_no_python_is_named(write: Write) -> None:
    file = write("is_no_python", "def hello(run)")
    assert refusal("is_no_python") == f"{file}:1: SyntaxError: expected ':'"


def test_a_mistake_in_a_definition_stays_what_it_is(write: Write) -> None:
    write("defines_badly", AGENT.format(name="no_words").replace('    "Says what it is told."\n', ""))
    with pytest.raises(AgentDefinitionError, match="needs a docstring"):
        import_agents("defines_badly")


def test_a_module_without_an_agent_is_named(write: Write) -> None:
    file = write("defines_nothing", "from a2a import agent", "", "def hello(run):", "    return run.text")
    said = f"A2A_AGENT_MODULES: the module defines_nothing ({file}) defines no agent: "
    assert refusal("defines_nothing").startswith(said)


def test_a_module_may_define_import_or_contain_its_agents(write: Write) -> None:
    write("defines_one", AGENT.format(name="found_here"))
    write("imports_one", "from defines_one import found_here")
    write("contains_one/__init__")
    write("contains_one/inner", AGENT.format(name="found_inside"))
    for module in ("defines_one", "defines_one", "imports_one", "contains_one.inner", "contains_one"):
        import_agents(module)
    assert {"found-here", "found-inside"} <= set(registry.names())


def test_the_agents_of_an_app_fail_in_a_sentence_too(write: Write) -> None:
    file = write("an_app/agents", "raise RuntimeError('no model')")
    write("an_app/__init__")
    with pytest.raises(ImproperlyConfigured) as refused:
        discover(partial(__import__, "an_app.agents"))
    assert str(refused.value) == f"{file}:1: the import ended with RuntimeError: no model"
