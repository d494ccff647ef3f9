"""The errors of msgspec about a value of a wrong type, in the words of JSON: a caller need not know Python's names."""

import re

_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")
_MISMATCH = re.compile(r"Expected `(?P<expected>[a-z]+(?: \| [a-z]+)*)`, got `(?P<received>[a-z]+)`")
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


def violation(sentence: str, root: str = "") -> tuple[str, str]:
    """Return the path of the wrong member and what is wrong with it, from an error message of msgspec.

    The path begins with the root, which is the path of the value that msgspec has read.
    """
    place = _AT.search(sentence)
    path, text = (place["path"], sentence[: place.start()]) if place else ("", sentence)
    for form, description in ((_MISSING, "is required"), (_UNKNOWN, "is unknown")):
        if member := form.match(text):
            return _joined(root, path, member["name"]), description
    if wrong := _MISMATCH.fullmatch(text):
        text = f"must be {_alternatives(wrong['expected'])}, not {KINDS.get(wrong['received'], wrong['received'])}"
    return _joined(root, path) or "params", text.replace("`", "")


def _joined(*steps: str) -> str:
    path = ".".join(step for step in steps if step)
    return path.replace(".[", "[")


def _alternatives(expected: str) -> str:
    """Return the types that a value may have. Null is left out: an absent member is null's equal."""
    types = [name for name in expected.split(" | ") if name != "null"] or ["null"]
    if "float" in types and "int" in types:
        types.remove("int")
    *others, last = [KINDS.get(name, name) for name in types]
    return f"{', '.join(others)} or {last}" if others else last
