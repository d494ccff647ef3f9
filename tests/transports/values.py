"""Any values of JSON, and the places inside them."""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([2**64, -1, "\0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, child in pairs for found in [(*path, key), *places(child, (*path, key))]]


@st.composite
def spoiled(draw: st.DrawFn, value: Any) -> Any:
    """Return the value with one or two places changed or left out."""
    value = deepcopy(value)
    for _ in range(draw(st.integers(1, 2))):
        if not (found := places(value)):
            break
        *path, last = draw(st.sampled_from(found))
        target: Any = value
        for key in path:
            target = target[key]
        if draw(st.booleans()):
            target[last] = draw(VALUES)
        else:
            del target[last]
    return value
