"""The pages about all systems: their requirements with tests, and the files of each language.

`python -m tests.seeds.table` writes them.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.seeds.requirements import SYSTEMS, Requirement

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "systems"
INTRODUCTION = """<!-- Made by `python -m tests.seeds.table`: change the requirements or the tests, not this page. -->

# Requirements

Each requirement of the five systems, with the tests that hold it. A test names its requirements in the marker
`requirement`. A requirement without a test is open, or is a deviation with its reason."""


def marks() -> Iterator[tuple[str, str]]:
    """Yield the id of a requirement and the name of a test that holds it, for each marker of the test files."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "requirement" not in (text := path.read_text("utf-8")):
            continue
        tree = ast.parse(text)
        everywhere = [name for node in tree.body if isinstance(node, ast.Assign) for name in _ids(node.value)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for name in [*everywhere, *(one for mark in node.decorator_list for one in _ids(mark))]:
                    yield name, node.name


def _ids(tree: ast.AST) -> Iterator[str]:
    """Yield the ids in the markers `requirement` of an expression."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
            yield from (str(argument.value) for argument in node.args if isinstance(argument, ast.Constant))


def tests_of() -> dict[str, list[str]]:
    """Return the names of the tests of each requirement."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for requirement, test in marks():
        names[requirement].add(test)
    return {requirement: sorted(tests) for requirement, tests in names.items()}


def requirements() -> str:
    """Return the page of requirements."""
    tests = tests_of()
    sections = [
        f"## {system}\n\n| Id | Requirement | Tests |\n| --- | --- | --- |\n"
        + "\n".join(f"| {name} | {row.text} | {_proof(row, tests.get(name, []))} |" for name, row in rows.items())
        for system, rows in SYSTEMS.items()
    ]
    return "\n\n".join([INTRODUCTION, *sections]) + "\n"


def _proof(row: Requirement, tests: list[str]) -> str:
    names = ", ".join(f"`{test}`" for test in tests)
    if row.deviation:
        return f"deviation: {row.deviation}" + (f"; {names}" if names else "")
    return names or "open"


# ------------------------------------------------------------------- the index

LANGUAGES = {
    "A2A 1.0": ("v1_0", "params_1_0", "cards_1_0", "json_1_0", "errors_1_0", "answers_1_0"),
    "A2A 0.3": ("v0_3", "params_0_x", "cards_0_3", "json_0_x", "answers_0_x"),
    "A2A 0.2": ("v0_2",),
    "A2A 0.x over REST": ("rest_0_x", "protobuf_0_x"),
    "ACP": ("acp",),
    "ADR-002": ("adr",),
    "VAPORA": ("vapora",),
    "SPARC": ("sparc",),
    "Zones": ("zone",),
}
"""The names of modules and folders that are of one language alone."""
INDEX = """<!-- Made by `python -m tests.seeds.table`: change the pages or the code, not this page. -->

# Systems

Taskdesk serves clients of systems other than A2A. The page of a system says how its clients talk to this server, and
where the server differs from what the system says. The page of requirements lists those of all systems, with their
tests."""
FILES = """## Files of a language

A language is meant to be one file, and a row in `a2a/languages.py`. These are the modules of `a2a` and `tasks_app` that
are of one language alone, by their names. What any language may use, such as an operation, a table or a field of
`Language`, is not counted."""


def index() -> str:
    """Return the index of the pages, with the count of files that each language took."""
    pages = [path for path in sorted(FOLDER.glob("*.md")) if path.name != "README.md"]
    links = "\n".join(f"- [{_title(path)}]({path.name})" for path in pages)
    head = "| Language | Files | Where |\n| --- | --- | --- |\n"
    return "\n\n".join([INDEX, links, FILES, head + "\n".join(map(_row, LANGUAGES))]) + "\n"


def _title(page: Path) -> str:
    return page.read_text("utf-8").partition("\n# ")[2].partition("\n")[0] or page.read_text("utf-8")[2:].split("\n")[0]


def _row(language: str) -> str:
    files = files_of(language)
    places = ", ".join(f"`{path.relative_to(ROOT).as_posix()}`" for path in files)
    return f"| {language} | {len(files)} | {places} |"


def files_of(language: str) -> list[Path]:
    """Return the modules of one language alone, without empty ones."""
    names = set(LANGUAGES[language])
    paths = [path for folder in ("a2a", "tasks_app") for path in (ROOT / folder).rglob("*.py")]
    own = [path for path in paths if names & {path.stem, *path.relative_to(ROOT).parts}]
    return sorted(path for path in own if "migrations" not in path.parts and path.stat().st_size)


PAGES = {"requirements": requirements, "README": index}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (FOLDER / f"{name}.md").write_text(make(), encoding="utf-8")
