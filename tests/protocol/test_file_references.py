"""References to files: what they look like, what becomes of them in an answer, and what runs read."""

import asyncio

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a.agents import define
from a2a.dialects.json import json_0_x, json_1_0
from a2a.files import MAX_NAME, SCHEME, id_of, insert_links, is_stored, reference, safe_name, safe_type
from a2a.run import Run
from a2a.types import Message, Part, Role

URL = reference("20261121", "ab" * 16, "report 1.pdf")


def link(file_id: str, name: str) -> str:
    return f"https://e.org/{file_id}/{name}"


def test_the_id_of_a_file_does_not_tell_its_reference() -> None:
    assert f"{SCHEME}20261121-{'ab' * 16}/report%201.pdf" == URL
    assert id_of(URL).startswith("20261121-")
    assert "ab" * 16 not in id_of(URL)
    assert id_of(URL) == id_of(reference("20261121", "ab" * 16, "other"))
    assert id_of(URL) != id_of(reference("20261122", "ab" * 16, "report 1.pdf"))


@pytest.mark.parametrize(
    "url", ["", SCHEME, URL[:-15], URL.upper(), URL + "?", f" {URL}", URL.replace("ab", "zz"), "a:b"]
)
def test_a_url_that_is_no_reference_has_no_id(url: str) -> None:
    assert not is_stored(Part(url=url))
    with pytest.raises(ValueError, match="no reference"):
        id_of(url)


@pytest.mark.parametrize("encode", [json_1_0.encode_part, json_0_x.encode_part], ids=["1.0", "0.x"])
def test_a_part_that_refers_to_a_file_is_answered_with_a_link(encode: object) -> None:
    wire = orjson.dumps(encode(Part(url=URL, filename="report 1.pdf")))  # type: ignore[operator]
    shown = insert_links(wire, link)
    assert SCHEME.encode() not in shown
    assert f'"{link(id_of(URL), "report%201.pdf")}"'.encode() in shown
    assert orjson.loads(shown)


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_is_taken_for_a_reference(before: str, after: str) -> None:
    said = f'{before}"url":"{URL}"{after}'
    wire = orjson.dumps({"text": said, said: [said], "uri": f"x{URL}"})
    assert insert_links(wire, link) == wire


@given(st.text(max_size=300))
def test_any_name_becomes_one_that_is_harmless(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe) <= MAX_NAME
    assert safe.isprintable()
    assert not set(safe) & set('/\\"<>:*?|')
    assert safe not in {".", ".."}
    assert is_stored(Part(url=reference("20261121", "0" * 32, safe)))


@given(st.text(max_size=60))
def test_any_media_type_becomes_one_that_a_header_can_carry(text: str) -> None:
    assert safe_type(text) == "application/octet-stream" or (text.isascii() and text.isprintable())


def test_a_media_type_is_kept_up_to_a_length() -> None:
    longest = "a" * 100 + "/" + "b" * 100 + ";c=" + "d" * 51
    assert [safe_type(longest), safe_type(longest + "d")] == [longest, "application/octet-stream"]


async def reader(run: Run) -> None:
    """Reads."""


def test_a_run_reads_what_is_there_and_says_what_is_not() -> None:
    class Files:
        async def read(self, url: str) -> bytes:
            return url.encode()

        def read_now(self, url: str) -> bytes:
            return url.encode()

    parts = (Part(text="ü"), Part(raw=b"r"), Part(url=URL), Part(url="https://e.org/a"), Part(data={"a": 1}))
    said = Message(message_id="m", role=Role.USER, parts=parts)
    run = Run(define(reader, {}), task_id="t", context_id="c", message=said, files=Files())
    expected = ["ü".encode(), b"r", URL.encode()]
    assert [run.read_now(part) for part in parts[:3]] == expected
    assert [asyncio.run(run.read(part)) for part in parts[:3]] == expected
    assert run.files == parts[1:4]
    for part, words in ((parts[3], "link, which is not followed"), (parts[4], "see part.data")):
        with pytest.raises(ValueError, match=words):
            run.read_now(part)
        with pytest.raises(ValueError, match=words):
            asyncio.run(run.read(part))
