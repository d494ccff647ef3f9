"""The documents say what is there: every setting, method, error, check, path and command; citations resolve."""

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

import a2a
from a2a.agents import registry
from a2a.dialects import rest_0_x, v1_0
from a2a.envelopes.bare import form
from a2a.errors import ALL
from a2a.language import Dialect
from a2a.languages import DIALECTS
from a2a.matrix import MATRIX
from a2a.options import OPTIONS
from config import settings
from tasks_app.management.reference import PAGES
from tasks_app.management.reference.settings import KINDS, sources
from tasks_app.upkeep.row_kinds import ROW_KINDS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in DOCUMENTS}
REFERENCE = ROOT / "docs" / "reference"
COMMANDS = ROOT / "tasks_app" / "management" / "commands"
SOURCE = "\n".join(sources())

READERS = rf'\b(?:{"|".join(KINDS)})\("([A-Z0-9_]+)"'


@pytest.mark.parametrize("name", sorted(set(re.findall(READERS, SOURCE))))
def test_every_setting_is_documented(name: str) -> None:
    assert f"\n| `{name}` | " in TEXTS["docs/reference/settings.md"]
    assert name in {"DATABASE_URL", "SECRET_KEY"} or hasattr(settings, name)


def test_every_reader_of_a_setting_has_a_kind() -> None:
    """A reader without one would hide its settings from the page, and from the test above."""
    assert set(re.findall(r'(?<![.\w])(\w+)\("[A-Z0-9_]+"', SOURCE)) <= set(KINDS)


def test_an_argument_that_may_be_repeated_is_documented_as_such() -> None:
    page = TEXTS["docs/reference/commands.md"]
    assert "a2a users role NAME [ROLE...]`" in page
    assert ", []" not in page, "an empty list is no choice of an operator"


def test_every_kind_of_row_that_a_purge_deletes_is_documented() -> None:
    section = TEXTS["docs/operations.md"].partition("\n## Retention\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(ROW_KINDS)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_method_is_documented(dialect: Dialect) -> None:
    page = TEXTS["docs/reference/methods.md"]
    assert dialect.methods
    assert [name for name in dialect.methods if f"| {dialect.version} | `{name}` |" not in page] == []


@pytest.mark.parametrize(("prefix", "language"), [("", v1_0.DIALECT), ("/v1", rest_0_x.PROTO)], ids=["1.0", "0.x"])
def test_every_route_is_documented(prefix: str, language: Dialect) -> None:
    page, routes = TEXTS["docs/reference/methods.md"], form(language).routes
    assert len(routes) > 10
    assert [route.path for route in routes if f"`{route.verb} {prefix}{route.path}`" not in page] == []


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.reason)
@pytest.mark.requirement("VAPORA-10")
def test_every_error_is_documented_with_its_numbers(error: type) -> None:
    lines = TEXTS["docs/reference/errors.md"].splitlines()
    _, cells = [line.split(" | ") for line in lines if line.startswith(f"| `{error.reason}` |")]
    for column in MATRIX.values():
        assert [cell for cell in cells if str(column[error].number) in cell]


def test_every_check_is_documented() -> None:
    modules = [file.read_text(encoding="utf-8") for file in (ROOT / "tasks_app" / "checks").glob("*.py")]
    ids = set(re.findall(r'id="(a2a\.[EW]\d+)"', "".join(modules)))
    assert ids
    assert ids == set(re.findall(r"\| `(a2a\.[EW]\d+)` \|", TEXTS["docs/reference/checks.md"]))


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_option_of_an_agent_is_documented(name: str) -> None:
    assert f"\n| `{name}` | " in TEXTS["docs/agents.md"]


def test_every_shipped_agent_is_documented() -> None:
    shipped = [agent.name for agent in registry if agent.function.__module__ == "tasks_app.agents.examples"]
    assert shipped
    assert all(f"`{name}`" in TEXTS["docs/agents.md"] for name in shipped)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tasks_app" / "management" / "commands").glob("[a-z]*.py")), ids=lambda path: path.stem
)
def test_every_command_is_documented(path: Path) -> None:
    assert f"\n## {path.stem}\n" in TEXTS["docs/reference/commands.md"]
    written = "".join(text for name, text in TEXTS.items() if not name.startswith("docs/reference/"))
    assert re.search(rf"(manage\.py|manage|make) {path.stem}\b", written)


ORDINARY = {"__init__", "__pycache__", "apps", "urls", "checks", "migrations"}
"""Modules that each package or application of Django has."""


def on_the_map(package: str) -> set[str]:
    """Return the names in the left column of the package's part of the map."""
    whole = TEXTS["docs/architecture.md"].partition("## The map")[2].partition("Imports go one way")[0]
    part = re.split(r"^(?=\S)", whole.partition(f"\n{package}/ ")[2], maxsplit=1, flags=re.MULTILINE)[0]
    columns = re.findall(r"^ {2,4}(\S+(?: \S+)*)(?:  |$)", part, re.MULTILINE)
    return {name.rstrip("/") for column in columns for name in column.split(" ")}


@pytest.mark.parametrize(
    ("package", "folders"), [("a2a", ["a2a", "a2a/dialects"]), ("tasks_app", ["tasks_app"])], ids=["a2a", "tasks_app"]
)
def test_every_room_is_on_the_map_and_no_other(package: str, folders: list[str]) -> None:
    paths = [path for folder in folders for path in (ROOT / folder).iterdir()]
    here = {path.stem for path in paths if path.suffix == ".py" or path.is_dir()}
    assert on_the_map(package) == here - ORDINARY


def test_every_make_target_is_a_rule_and_explained() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split())
    rules = set(re.findall(r"^([a-z]+):.*\n\t", makefile, re.MULTILINE))
    explained = set(re.findall(r"^([a-z]+):.* ## .", makefile, re.MULTILINE)) | {"help"}
    named = set(re.findall(r"(?:`|^)(?:\S+=\S+ )*make ([a-z]+)", "".join(TEXTS.values()), re.MULTILINE))
    assert phony == rules == explained >= named >= {"run", "test", "bench", "check"}


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    files = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    there = {name for text in files for name in re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE)}
    assert rows
    for promise, *proof in rows:
        named = set(re.findall(r"`(test_\w+)`", " ".join(proof)))
        assert named, f"{promise}: no test proves it"
        assert named <= there, f"{promise}: no such test as {named - there}"
    assert "](docs/promises.md)" in TEXTS["README.md"]


def test_every_citation_of_the_protocol_page_names_a_section_that_is_there() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    sections = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    sources = [path for folder in ("a2a", "tasks_app", "config", "tests") for path in (ROOT / folder).rglob("*.py")]
    cited = {
        anchor
        for path in sources
        for place in re.findall(r"docs/protocol\.md((?:[,\s]*#[\w-]+)+)", path.read_text(encoding="utf-8"))
        for anchor in re.findall(r"#([\w-]+)", place)
    }
    assert len(cited) > 20
    assert cited <= sections


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_reference_page_is_as_the_code_says(name: str) -> None:
    page = (REFERENCE / f"{name}.md").read_text(encoding="utf-8")
    assert page == PAGES[name](), "run `.venv/bin/python manage.py a2a reference --write`, and look at what changed"


def test_there_is_no_other_page_of_reference() -> None:
    assert {path.stem for path in REFERENCE.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", ["settings", "errors", "checks"])
def test_every_row_of_reference_has_a_text(name: str) -> None:
    rows = [line.split(" | ") for line in PAGES[name]().splitlines() if re.match(r"\| [`-][^-]", line)]
    assert len(rows) > 15
    assert [row[0] for row in rows if len(row[-1].strip(" |")) < 10] == []


def test_a_command_prints_a_page_and_knows_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("a2a", "reference", "errors")
    assert capsys.readouterr().out == PAGES["errors"]()
    with pytest.raises(CommandError, match=r"There is no page 'error'\. The pages are checks"):
        call_command("a2a", "reference", "error")


CODE = "".join(
    path.read_text("utf-8") for name in ("a2a", "tasks_app", "config") for path in (ROOT / name).rglob("*.py")
)
CLASSES = set(re.findall(r"^class (\w+)", CODE, re.MULTILINE))
TERMS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE
)
TERMS = [row for row in TERMS if row[0] != "Word"]


def is_in_the_code(name: str) -> bool:
    """Return whether a path, a class, or a word of the code has this name."""
    if "/" in name:
        return (ROOT / name).exists()
    return (
        name in CLASSES
        if name[0].isupper() and not name.isupper() and "_" not in name
        else bool(re.search(rf"\b{name}\b", CODE))
    )


@pytest.mark.parametrize(("word", "meaning", "places"), TERMS, ids=[word for word, *_ in TERMS])
def test_a_term_is_one_sentence_and_in_the_code(word: str, meaning: str, places: str) -> None:
    assert meaning.endswith(".")
    assert ". " not in meaning
    names = re.findall(r"`([^`]+)`", places)
    assert names
    assert [name for name in names if not is_in_the_code(name.removeprefix("run."))] == []


def test_every_table_and_all_that_agents_import_is_a_term() -> None:
    tables = {model.__name__ for model in apps.get_app_config("tasks_app").get_models()}
    explained = set(re.findall(r"`(\w+)`", " ".join(places for *_, places in TERMS)))
    assert tables | set(a2a.__all__) <= explained
    words = [word for word, *_ in TERMS]
    assert len(set(words)) == len(words)


def test_every_decision_is_listed_and_says_what() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = {path.name: path.read_text("utf-8") for path in folder.glob("*.md") if path.name != "README.md"}
    index = (folder / "README.md").read_text("utf-8")
    assert dict(re.findall(r"^- \[(.+)\]\((.+)\)$", index, re.MULTILINE)) == {
        text.partition("\n")[0].removeprefix("# "): name for name, text in pages.items()
    }
    assert [name for name, text in pages.items() if "\n## What\n" not in text] == []


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as they are made where repositories are shown."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_and_path_of_a_document_leads_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"https?:", link):
            place, _, anchor = link.partition("#")
            target = (path.parent / place).resolve() if place else path
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link
    named = re.findall(r"`((?:a2a|tasks_app|config|tests|docs|templates)/[\w./-]*)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_picture_of_the_whole_names_what_there_is() -> None:
    named = re.findall(r"\b((?:a2a|tasks_app)/[\w/]+(?:\.py)?)", a2a.__doc__ or "")
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


STOPS = re.findall(r"`([\w/]+\.py)`,\s+((?:`\w+`(?: or )?)+)", TEXTS["docs/architecture.md"])


@pytest.mark.parametrize(("path", "names"), STOPS, ids=[" ".join(stop).replace("`", "") for stop in STOPS])
def test_every_stop_of_the_walk_is_defined_where_it_says(path: str, names: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"^(?:async )?(?:def|class) {name}\b", source, re.MULTILINE), name


def test_the_walk_has_all_its_stops() -> None:
    """Reading the page wrongly must not make its test easy."""
    assert len(STOPS) >= 25


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    readme = TEXTS["README.md"]
    assert len(readme.splitlines()) <= 150
    pages = {name for name in TEXTS if name.count("/") < 2 or name.startswith("docs/reference/")} - {"README.md"}
    assert pages <= set(re.findall(r"\]\(([^)#]+)", readme))
