"""The errors of msgspec about a value of a wrong type, in the words of JSON: a caller need not know Python's names."""

import ast
import re
from collections.abc import Sequence
from typing import Any

from a2a.literals import KEY, literals_at

_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_AT = re.compile(r" - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")
_MISMATCH = re.compile(r"Expected `(?P<expected>[a-z]+(?: \| [a-z]+)*)`, got `(?P<received>[a-z]+)`")
_BOUND = re.compile(r"Expected `[a-z]+` (?P<sign>>=|<=|>|<) (?P<bound>\S+)")
_LENGTH = re.compile(r"Expected `(?P<kind>[a-z]+)` of length (?P<sign>>= |<= |)(?P<length>\d+)")
_MULTIPLE = re.compile(r"Expected `[a-z]+` that's a (?P<multiple>multiple of \S+)")
_PATTERN = re.compile(r"Expected `str` matching regex (?P<literal>['\"].+)", re.DOTALL)
_CHOICE = "Invalid enum value "
_SIGNS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_UNITS = {"str": "characters", "array": "items", "object": "members"}
"""The name of what a string, an array or an object has a number of."""
UNKNOWN = "is unknown"
"""The fault of a member that an object may not have."""
KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
"""The name in JSON of each type in a message of msgspec."""


def violation(sentence: str, kind: Any, root: str = "") -> tuple[str, str]:
    """Return the path of the wrong member and what is wrong with it, from an error message of msgspec about a type.

    The path begins with the root, which is the path of the value that msgspec has read.
    """
    place = _AT.search(sentence)
    path, text = (place["path"], sentence[: place.start()]) if place else ("", sentence)
    for form, description in ((_MISSING, "is required"), (_UNKNOWN, UNKNOWN)):
        if member := form.match(text):
            return _joined(root, path, member["name"]), description
    if place and place["key"]:
        return _joined(root, path), f"has a key that {_words(text, kind, f'{path}.{KEY}')}"
    return _joined(root, path) or "params", _words(text, kind, path)


def _words(text: str, kind: Any, path: str) -> str:
    """Return what is wrong with a value, in the words of JSON where they are known."""
    if text.startswith(_CHOICE):
        literals = literals_at(kind, path)
        return f"must be {'one of ' if len(literals) > 1 else ''}{', '.join(literals) or 'another value'}"
    if wrong := _MISMATCH.fullmatch(text):
        return f"must be {_alternatives(wrong['expected'])}, not {KINDS.get(wrong['received'], wrong['received'])}"
    if wrong := _BOUND.fullmatch(text):
        return f"must be {_SIGNS[wrong['sign']]} {wrong['bound'].removesuffix('.0')}"
    if wrong := _MULTIPLE.fullmatch(text):
        return f"must be a {wrong['multiple'].removesuffix('.0')}"
    if wrong := _LENGTH.match(text):
        return _length(wrong["sign"], wrong["length"], _UNITS.get(wrong["kind"], "bytes"))
    if wrong := _PATTERN.fullmatch(text):
        return f"must match {ast.literal_eval(wrong['literal'])}"  # It is written as in Python.
    return text.replace("`", "")


def _length(sign: str, length: str, units: str) -> str:
    """Return how long a value must be."""
    if (sign, length) == (">= ", "1"):
        return "must not be empty"
    return f"must have {length} {units} {_SIGNS.get(sign.strip(), '')}".strip()


def _joined(*steps: str) -> str:
    path = ".".join(step for step in steps if step)
    return path.replace(".[", "[")


def _alternatives(expected: str) -> str:
    """Return the types that a value may have. Null is left out: an absent member is null's equal."""
    types = [name for name in expected.split(" | ") if name != "null"] or ["null"]
    if "float" in types and "int" in types:
        types.remove("int")
    return list_choices([KINDS.get(name, name) for name in types])


def list_choices(names: Sequence[str]) -> str:
    """Return names as a sentence has them: "a, b or c"."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last
