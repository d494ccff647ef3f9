"""The envelope: docs/protocol.md#envelope, and every way to get it wrong."""

import json
from contextlib import suppress

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from a2a.envelopes import BadMember, Member
from a2a.envelopes.body import MAX_DEPTH, MAX_NODES, WINDOW, holds_nul, nul_in, read_json
from a2a.envelopes.jsonrpc import ENVELOPE, MAX_BATCH, failure, parse
from a2a.errors import InvalidRequest, ParseError
from a2a.languages import NEUTRAL

ONE = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t"}}


def body(**changes: object) -> bytes:
    return json.dumps(ONE | changes).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in ONE.items() if key != name}).encode()


def bad(data: bytes) -> tuple[object, str]:
    """Return the id and the detail of a member that is no request."""
    member = parse(data)
    assert isinstance(member, BadMember)
    assert type(member.error) is InvalidRequest
    return member.id, member.error.facts["detail"]


@pytest.mark.requirement("ZONE-01")
def test_a_request_is_read() -> None:
    wire = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t"}}
    assert parse(body()) == Member(id=1, method="tasks/get", params={"id": "t"}, source=wire)


@pytest.mark.parametrize("rpc_id", ["", "a", "1", 0, -1, 1, 2**53 + 1, 2**64 - 1, -(2**63)], ids=repr)
@pytest.mark.requirement("ACP-04", "ZONE-07")
def test_an_id_comes_back_as_it_was(rpc_id: str | int) -> None:
    member = parse(body(id=rpc_id))
    assert isinstance(member, Member)
    assert (type(member.id), member.id) == (type(rpc_id), rpc_id)
    assert orjson.loads(ENVELOPE.reply(rpc_id, b"null")) == {"jsonrpc": "2.0", "id": rpc_id, "result": None}


@pytest.mark.parametrize("rpc_id", [1.0, 0.0, -3.0, float(2**53)], ids=repr)
def test_an_id_without_a_fraction_is_an_integer_and_keeps_its_form(rpc_id: float) -> None:
    member = parse(body(id=rpc_id))
    assert isinstance(member, Member)
    assert (type(member.id), member.id) == (float, rpc_id)
    assert ENVELOPE.reply(rpc_id, b"null") == b'{"jsonrpc":"2.0","id":%s,"result":null}' % str(rpc_id).encode()


@pytest.mark.parametrize("rpc_id", [True, False, 1.5, {}, [], [1], {"a": 1}], ids=repr)
def test_an_id_of_another_type_is_refused_with_a_null_id(rpc_id: object) -> None:
    null, told = bad(body(id=rpc_id))
    assert (null, "must be a string or an integer, not a" in told) == (None, True)


@pytest.mark.parametrize("rpc_id", [2**64, -(2**63) - 1, 10**29, 10**40, 2.0**54], ids=repr)
def test_an_id_that_could_not_be_sent_back_exactly_is_refused_as_too_large(rpc_id: float) -> None:
    assert bad(body(id=rpc_id)) == (
        None,
        "id must be sent as a string: this number is too large to be sent back exactly",
    )


@pytest.mark.requirement("ACP-05")
def test_an_absent_id_makes_a_notification() -> None:
    member = parse(without("id"))
    assert isinstance(member, Member)
    assert member.id is UNSET


def test_a_null_id_makes_a_request() -> None:
    member = parse(body(id=None))
    assert isinstance(member, Member)
    assert member.id is None


def test_a_broken_request_without_id_is_answered_with_a_null_id() -> None:
    assert bad(b'{"jsonrpc":"2.0"}') == (None, "method must be a non-empty string")


@pytest.mark.parametrize("version", ["1.0", "2", "2.00", "", 2.0, 2, None, True, [], {}], ids=repr)
def test_another_jsonrpc_version_is_refused(version: object) -> None:
    assert bad(body(jsonrpc=version)) == (1, 'jsonrpc must be "2.0"')


def test_an_absent_jsonrpc_version_is_refused() -> None:
    assert bad(without("jsonrpc")) == (1, 'jsonrpc must be "2.0"')


@pytest.mark.parametrize("method", ["", None, 1, True, [], {}], ids=repr)
@pytest.mark.requirement("ZONE-04")
def test_a_method_that_is_no_name_is_refused(method: object) -> None:
    assert bad(body(method=method)) == (1, "method must be a non-empty string")


def test_an_absent_method_is_refused() -> None:
    assert bad(without("method")) == (1, "method must be a non-empty string")


@pytest.mark.parametrize("params", [None, [], [1], {}, "a", 1], ids=repr)
def test_params_are_the_business_of_the_dialect(params: object) -> None:
    member = parse(body(params=params))
    assert isinstance(member, Member)
    assert member.params == params


def test_absent_params_are_told_from_null() -> None:
    member = parse(without("params"))
    assert isinstance(member, Member)
    assert member.params is UNSET


def test_unknown_members_are_ignored() -> None:
    assert replace(parse(body(trace="x")), source=None) == replace(parse(body()), source=None)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"null", "null"),
        (b"true", "a boolean"),
        (b"1", "a number"),
        (b"1.5", "a number"),
        (b'"a"', "a string"),
    ],
)
def test_a_body_that_is_no_object_is_refused(data: bytes, kind: str) -> None:
    assert bad(data) == (None, f"a request must be an object, not {kind}")


UNREADABLE = {
    "nothing": b"",
    "white space": b" \n",
    "half an object": b'{"jsonrpc":"2.0"',
    "two values": b"{}{}",
    "a trailing comma": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "a comment": b"{}//",
    "NaN": body(params={"a": 0}).replace(b": 0", b": NaN"),
    "infinity": body(params={"a": 0}).replace(b": 0", b": Infinity"),
    "minus infinity": body(params={"a": 0}).replace(b": 0", b": -Infinity"),
    "a leading zero": b'{"a":01}',
    "a lone high surrogate": b'{"a":"\\ud800"}',
    "a lone low surrogate": b'{"a":"\\udc00"}',
    "a surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "an overlong character": b'{"a":"\xc0\x80"}',
    "Latin-1": b'{"a":"\xe9"}',
    "half a character": b'{"a":"\xe2\x82',
    "a raw zero byte": b'{"a":"\x00"}',
    "a raw line end in a string": b'{"a":"\n"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "UTF-32": '{"a":1}'.encode("utf-32"),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.requirement("ZONE-03")
def test_a_body_that_is_no_json_is_a_parse_error(data: bytes) -> None:
    with pytest.raises(ParseError):
        parse(data)


def test_a_surrogate_pair_is_one_character() -> None:
    assert read_json(b'"\\ud83d\\ude00"') == "\U0001f600"


@pytest.mark.parametrize("inner", [b"", b"1", b"{}"], ids=["empty", "a number", "an object"])
def test_depth_64_is_read_and_65_is_refused(inner: bytes) -> None:
    room = MAX_DEPTH - (inner == b"{}")
    read_json(b"[" * room + inner + b"]" * room)
    with pytest.raises(InvalidRequest, match="Request payload"):
        read_json(b"[" * (room + 1) + inner + b"]" * (room + 1))


@pytest.mark.parametrize("depth", [65, 1_024, 1_025, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_json_that_is_too_deep_is_refused_in_the_same_words(depth: int, opening: bytes, closing: bytes) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_json(opening * depth + b"1" + closing * depth)
    assert caught.value.facts == {"detail": "the JSON is nested deeper than 64 levels"}


def test_wide_json_is_not_deep() -> None:
    assert len(read_json(b"[" + b",".join([b"[{}]"] * 10_000) + b"]")) == 10_000


def test_brackets_in_strings_are_not_depth() -> None:
    assert read_json(b'"' + b"[" * 1_000 + b'"') == "[" * 1_000


def test_brackets_in_long_strings_are_not_depth_wherever_a_window_ends() -> None:
    for place in range(WINDOW - 8, WINDOW + 2):
        text = "a" * place + '\\"[' * 100 + "\\" * 7 + '"' + "[" * 100
        assert read_json(json.dumps([text]).encode()) == [text]
        with pytest.raises(InvalidRequest, match="Request payload"):
            read_json(json.dumps([text]).encode().replace(b"]", b"," + b"[" * 65 + b"]" * 66))


NUL = {
    "a value": ({"id": "a\0"}, "id"),
    "a key": ({"metadata": {"a\0": 1}}, "metadata"),
    "a key of params": ({"\0": 1}, "params"),
    "a part": ({"message": {"parts": [{"text": "a"}, {"text": "\0"}]}}, "message.parts[1].text"),
    "a positional value": (["\0"], "[0]"),
    "no object": ("\0", "params"),
}


@pytest.mark.parametrize(("params", "field"), NUL.values(), ids=NUL)
def test_the_zero_character_in_params_is_a_violation_of_its_field(params: object, field: str) -> None:
    member = parse(body(params=params))
    assert isinstance(member, Member)
    assert (member.id, member.nul) == (1, True)
    error = nul_in(member.params)
    assert error is not None
    assert error.violations == ((field, "must not hold the character U+0000"),)


def test_the_zero_character_in_an_id_is_not_sent_back() -> None:
    assert bad(body(id="a\0")) == (None, "id holds the character U+0000")
    assert bad(body(id="a\0", jsonrpc="1.0"))[0] is None
    assert bad(b'{"\\u0000":1,' + body(id="a\0")[1:])[0] is None


def test_the_zero_character_elsewhere_is_refused() -> None:
    assert bad(body(method="a\0")) == (1, "method holds the character U+0000")
    assert bad(body(**{"a\0": 1})) == (1, "the name of a member holds the character U+0000")
    assert bad(body(paramsx="\0")) == (1, "paramsx holds the character U+0000")


def test_a_backslash_before_u0000_is_ordinary_text() -> None:
    assert isinstance(parse(body(params={"a": "\\u0000"})), Member)


@pytest.mark.requirement("ACP-17")
def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Request payload") as caught:
        parse(b"[]")
    assert caught.value.facts["detail"] == "a batch must have at least one member"


@pytest.mark.parametrize("size", [1, 2, MAX_BATCH])
@pytest.mark.requirement("ACP-17")
def test_a_batch_keeps_its_order(size: int) -> None:
    members = parse(b"[" + b",".join(body(id=number) for number in range(size)) + b"]")
    assert isinstance(members, list)
    assert [member.id for member in members] == list(range(size))


@pytest.mark.requirement("ACP-17")
def test_a_batch_of_1001_is_refused_as_a_whole() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(b"[" + b",".join([body()] * 1_001) + b"]")
    assert caught.value.facts["detail"] == "a batch may have 1000 members at most, not 1001"


@pytest.mark.requirement("ACP-17")
def test_a_bad_member_does_not_spoil_its_batch() -> None:
    members = parse(b"[1," + body() + b",[]," + without("id") + b',{"jsonrpc":"2.0","id":7}]')
    assert isinstance(members, list)
    assert [type(member) for member in members] == [BadMember, Member, BadMember, Member, BadMember]
    assert [member.id for member in members] == [None, 1, None, UNSET, 7]


@pytest.mark.requirement("ACP-04", "ZONE-02")
def test_a_failure_has_an_error_and_no_result() -> None:
    answer = orjson.loads(failure(None, ParseError(), NEUTRAL).payload)
    assert answer == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "Invalid JSON payload"},
    }


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "it is empty"),
        (b"{\n'id': 1}", "unexpected character, expected a string key, at line 2, column 1"),
        (b'{"id":1,}', "trailing comma is not allowed, at line 1, column 8"),
        (b'{"id":"\\ud800"}', "no low surrogate in string, at line 1, column 8"),
        (b'{"id":1', "unexpected end of data, at line 1, column 8"),
        (b'{"id":"\xe9"}', "it is not UTF-8"),
        (b"\xef\xbb\xbf{}", "UTF-8 byte order mark (BOM) is not supported, at line 1, column 1"),
    ],
)
def test_a_body_that_is_no_json_is_told_why_and_where(data: bytes, fault: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(data)
    assert caught.value.facts == {"detail": fault}


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(ParseError, InvalidRequest):
        parse(data)


scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)
odd = st.fixed_dictionaries({}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params"), anything))


@settings(deadline=None)
@given(odd, st.booleans())
def test_any_object_is_a_call_or_a_bad_call(changes: dict[str, object], right: bool) -> None:
    data = json.dumps((ONE if right else {}) | changes).encode()
    try:
        member = parse(data)
    except (ParseError, InvalidRequest):
        return
    assert isinstance(member, Member | BadMember)
    if isinstance(member, BadMember):
        assert orjson.loads(ENVELOPE.reply(member.id, b"1"))["id"] == member.id


@pytest.mark.parametrize("piece", [b"1", b"[]", b"{}", b'""', b'{"a":1}'], ids=repr)
def test_more_values_than_are_allowed_are_refused(piece: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_json(b"[" + b",".join([piece] * (MAX_NODES + 1)) + b"]")
    assert "50000 values" in refused.value.facts["detail"]


def test_values_up_to_the_limit_are_read() -> None:
    assert len(read_json(b"[" + b",".join([b"1"] * (MAX_NODES - 1)) + b"]")) == MAX_NODES - 1


@pytest.mark.parametrize("text", [",[{", '\\",', "a,b\n", "\\\\,"], ids=repr)
def test_commas_and_brackets_of_a_text_are_no_values(text: str) -> None:
    table = text * (2 * MAX_NODES)
    assert read_json(json.dumps({"a": table}).encode()) == {"a": table}


@pytest.mark.parametrize(
    "body", [b'"' + b'\\"' * 500_000, b'"' * 999_999, b"\\" * 1_000_000, b'[",' * 300_000], ids=len
)
def test_a_body_that_is_no_json_is_counted_in_one_pass(body: bytes) -> None:
    with pytest.raises((ParseError, InvalidRequest)):
        read_json(body)


@given(
    st.recursive(
        st.text(alphabet='[]{},"\\a\0', max_size=5) | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[{"\\\0', max_size=3), inner),
    )
)
def test_depth_and_zero_characters_are_found_in_the_bytes(value: object) -> None:
    def depth(inner: object) -> int:
        below = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else None
        return 0 if below is None else 1 + max(map(depth, below), default=0)

    body = orjson.dumps(value)
    for extra in (MAX_DEPTH - depth(value), MAX_DEPTH - depth(value) + 1):
        wrapped = b"[" * extra + body + b"]" * extra
        if extra + depth(value) > MAX_DEPTH:
            with pytest.raises(InvalidRequest) as refused:
                read_json(wrapped)
            assert "deeper" in refused.value.facts["detail"]
        else:
            read_json(wrapped)
    assert holds_nul(body) == (nul_in(value) is not None)
