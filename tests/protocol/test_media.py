"""Media types: exact ones, ranges, parameters, spellings; and what parts say they are."""

import pytest

from a2a.media import is_mode, media_type_of, modes
from a2a.types import Part


@pytest.mark.parametrize(
    ("taken", "asked", "fits"),
    [
        (["text/plain"], "text/plain", True),
        (["text/plain"], "TEXT/Plain", True),
        (["text/plain"], "text/plain; charset=utf-8", True),
        (["text/plain"], " text/plain ;q=0.1", True),
        (["text/plain"], "text", True),
        (["text/plain"], "text/html", False),
        (["text/plain"], "text/*", True),
        (["text/plain"], "image/*", False),
        (["text/plain"], "*/*", True),
        (["text/plain"], "*", True),
        (["text/plain"], "", False),
        (["text/plain"], "/", False),
        (["text/plain"], "*/plain", False),
        (["text/plain"], "text/plain/more", False),
        (["text/*"], "text/csv", True),
        (["text/*"], "text/*", True),
        (["text/*"], "textual/csv", False),
        (["text/*"], "application/json", False),
        (["text/*"], "*/*", True),
        (["*/*"], "video/mp4", True),
        (["*/*"], "image/*", True),
        (["*/*"], "nonsense", False),
    ],
)
def test_a_list_of_media_types_and_one_that_is_asked_for(taken: list[str], asked: str, fits: bool) -> None:
    assert modes(taken).meet([asked]) is fits
    assert modes(taken).meet(["x/y", asked]) is (fits or taken == ["*/*"])
    # A part has one type. A range is no type, so only an agent that takes everything takes it.
    assert modes(taken).has(asked) is ((fits and "*" not in asked) or taken == ["*/*"])


def test_a_part_of_any_name_fits_an_agent_that_takes_anything() -> None:
    assert modes(["*/*"]).has("nonsense")
    assert not modes(["text/*"]).has("nonsense")


def test_nothing_meets_an_empty_wish() -> None:
    assert not modes(["*/*"]).meet([])


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Part(text="a"), "text/plain"),
        (Part(text="a", media_type="text/markdown"), "text/markdown"),
        (Part(data=None), "application/json"),
        (Part(raw=b""), "application/octet-stream"),
        (Part(url="https://example.org/a.png"), "application/octet-stream"),
        (Part(url="https://example.org/a.png", media_type="image/png"), "image/png"),
    ],
)
def test_a_part_is_what_it_says_or_what_its_kind_is(part: Part, kind: str) -> None:
    assert media_type_of(part) == kind


@pytest.mark.parametrize("name", ["text/plain", "*/*", "image/*", "application/vnd.a+json"])
def test_an_agent_may_name_a_media_type_or_a_range(name: str) -> None:
    assert is_mode(name)


@pytest.mark.parametrize(
    "name", ["", "text", "*", "*/plain", "Text/plain", "text/plain; charset=utf-8", "a/b/c", "text/", "a b/c", 5, None]
)
def test_an_agent_may_not_name_another_text_or_value(name: object) -> None:
    assert not is_mode(name)
