"""Words of the code: how docstrings begin, and which words are no names."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("a2a", "config", "tasks_app")
VAGUE = re.compile(
    r"\s*(Of|Those|As|The same|What|(?:Who|Some|No|Any|Every)(?:body|one|ever)|Who|Whom|Whose|Something)\b"
)
"""Beginnings of docstrings that do not name their subject."""
PARTICIPLES = frozenset(
    "asked begun brought chosen drawn found given got heard held kept known made meant said seen sent shown spoken "
    "taken thought told tried wanted won".split()
)
"""Words that are no names, because they do not say of what."""


def sources(room: str) -> dict[str, str]:
    """Return the text of each module of a room, by its path."""
    paths = [path for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def docstrings(source: str) -> list[str]:
    """Return the texts below modules, classes, functions, constants and fields."""
    bodies = [node.body for node in ast.walk(ast.parse(source)) if isinstance(getattr(node, "body", None), list)]
    return [
        text
        for body in bodies
        for statement in body
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(text := statement.value.value, str)
    ]


def names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a module gives, with their lines."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def participles(source: str) -> list[tuple[int, str]]:
    """Return the names that are a participle alone, apart from underscores and case."""
    return [(line, name) for line, name in names(source) if name.strip("_").lower() in PARTICIPLES]


@pytest.mark.parametrize("room", [*ROOMS, "tests"])
def test_every_docstring_begins_by_naming_its_subject(room: str) -> None:
    texts = {path: docstrings(source) for path, source in sources(room).items()}
    assert sum(map(len, texts.values())) > 5
    assert [(path, text) for path, found in texts.items() for text in found if VAGUE.match(text)] == []


def test_every_test_names_its_subject_first() -> None:
    functions = [name for source in sources("tests").values() for _, name in names(source) if name.startswith("test_")]
    sentences = [name.removeprefix("test_").replace("_", " ").capitalize() for name in functions]
    assert len(sentences) > 1_000
    vague = [sentence for sentence in sentences if VAGUE.match(sentence)]
    assert [sentence for sentence in vague if not sentence.startswith("The same ")] == []


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_is_a_participle(room: str) -> None:
    offenders = {path: participles(source) for path, source in sources(room).items()}
    assert {path: places for path, places in offenders.items() if places} == {}


@pytest.mark.parametrize(
    "source",
    [
        "def told(): ...",
        "async def _told(): ...",
        "class Told: ...",
        "def tell(told): ...",
        "lambda told: told",
        "told = 1",
        "self.told = 1",
        "for told in (): ...",
        "[told for told in ()]",
        "(told := 1)",
        "with open('x') as told: ...",
        "match 1:\n    case told: ...",
        "match 1:\n    case [*told]: ...",
    ],
)
def test_the_search_finds_a_participle_in_every_kind_of_name(source: str) -> None:
    assert [name.strip("_").lower() for _, name in participles(source)] == ["told"]


@pytest.mark.parametrize("text", ["Of a task.", "Who asks.", "Nobody waits.", "The same again.", "Something else."])
def test_the_search_finds_a_docstring_without_a_subject(text: str) -> None:
    assert docstrings(f'def act():\n    """{text}"""') == [text]
    assert VAGUE.match(text)
    assert not VAGUE.match("Return the task.")
