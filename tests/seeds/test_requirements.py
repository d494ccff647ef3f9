"""The requirements of the five systems, and the tests that name them."""

import pytest

from tests.seeds import table
from tests.seeds.requirements import ALL, OPEN

TESTS = table.tests_of()


def test_every_marker_names_a_requirement() -> None:
    assert TESTS.keys() <= ALL.keys()


@pytest.mark.parametrize("name", [name for name in ALL if name not in OPEN])
def test_a_requirement_has_a_test_or_is_a_deviation_with_a_reason(name: str) -> None:
    assert TESTS.get(name) or ALL[name].deviation


@pytest.mark.parametrize("name", list(table.PAGES))
def test_a_page_is_as_the_code_and_the_markers_say(name: str) -> None:
    page = table.FOLDER / f"{name}.md"
    assert page.read_text("utf-8") == table.PAGES[name](), "run `.venv/bin/python -m tests.seeds.table`"


@pytest.mark.parametrize("language", list(table.LANGUAGES))
def test_every_language_has_a_file(language: str) -> None:
    assert table.files_of(language)


def test_a_requirement_is_one_sentence() -> None:
    assert [row.text for row in ALL.values() if not row.text.endswith(".") or ". " in row.text] == []
