"""The values that a type allows in one place, for the error of a value that is none of them."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import inspect

KEY = "`key`"
"""The last step of a path that leads to the keys of an object."""
_STEP = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


def literals_at(kind: Any, path: str) -> list[str]:
    """Return the values of the literals and enums that a type has at a path of msgspec; none if there are none."""
    places = list(_bare(inspect.type_info(kind)))
    for step in _STEP.findall(path):
        places = [inner for place in places for member in _inside(place, step) for inner in _bare(member)]
    return [str(value) for place in places for value in _values(place)]


def _values(kind: inspect.Type) -> Sequence[Any]:
    if isinstance(kind, inspect.LiteralType):
        return kind.values
    return [member.value for member in kind.cls] if isinstance(kind, inspect.EnumType) else ()


def _bare(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yield a type without its limits and descriptions; of a union each member."""
    if isinstance(kind, inspect.Metadata):
        yield from _bare(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _bare(member)
    else:
        yield kind


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    """Yield the types behind a step of a path."""
    match kind:
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType():
            yield from (field.type for field in kind.fields if field.encode_name == step)
        case inspect.DictType():
            yield kind.key_type if step == KEY else kind.value_type
        case inspect.TupleType():
            yield from (member for place, member in enumerate(kind.item_types) if step == f"[{place}]")
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            yield kind.item_type
