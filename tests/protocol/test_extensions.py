"""Extensions: what the headers ask for, however they were put together, and what that activates."""

import pytest

from a2a.errors import ExtensionSupportRequired, InvalidRequest
from a2a.extensions import MAX_CHARACTERS, MAX_URIS, activate, is_uri, read_uris
from a2a.types import Extension

GEO, TRACE = "https://example.org/ext/geo/v1", "urn:example:trace"


@pytest.mark.parametrize(
    ("headers", "uris"),
    [
        ((), ()),
        (("", ""), ()),
        ((",, ,",), ()),
        ((GEO,), (GEO,)),
        ((f" {GEO} ,{TRACE}", TRACE), (GEO, TRACE)),
        (("a\r\nb,\x00,ü",), ("a\r\nb", "\x00", "ü")),
    ],
)
def test_headers_are_merged_and_each_uri_counts_once(headers: tuple[str, ...], uris: tuple[str, ...]) -> None:
    assert read_uris(*headers) == uris


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (",".join(f"u:{number}" for number in range(MAX_URIS + 1)), f"{MAX_URIS} extensions"),
        ("x" * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS} characters"),
        ("," * 60_000, f"{MAX_CHARACTERS} characters"),
    ],
)
def test_more_than_anybody_needs_is_refused(header: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_uris(header)
    assert told in refused.value.facts["detail"]


def test_only_what_is_declared_is_activated_in_the_order_of_the_card() -> None:
    declared = (Extension(uri=TRACE), Extension(uri=GEO, required=True))
    assert activate(declared, (GEO, "a\r\nb", TRACE)) == (TRACE, GEO)
    assert activate(declared, (GEO,)) == (GEO,)


def test_another_version_or_spelling_of_an_extension_is_another_extension() -> None:
    declared = (Extension(uri=GEO, required=True), Extension(uri=TRACE, required=True))
    with pytest.raises(ExtensionSupportRequired) as refused:
        activate(declared, (GEO.replace("v1", "v2"), GEO.upper(), GEO + "/", TRACE))
    assert refused.value.facts["extension"] == GEO
    with pytest.raises(ExtensionSupportRequired) as refused:
        activate(declared, ())
    assert refused.value.facts["extension"] == f"{GEO}, {TRACE}"


@pytest.mark.parametrize("uri", [GEO, TRACE, "x-own:1", "https://example.org/a?b=c#d"])
def test_an_agent_may_declare_an_absolute_uri(uri: str) -> None:
    assert is_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "geo",
        "/relative",
        "https:",
        "https://e.org/a b",
        "https://e.org/a,b",
        "https://e.org/ü",
        "a:\r\n",
        "x:" * 2_000,
        5,
    ],
)
def test_an_agent_may_not_declare_another_text_or_value(uri: object) -> None:
    assert not is_uri(uri)
