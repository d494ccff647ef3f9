"""Examples of a document, sent to a running server with its own ids in their places, and compared with its answers.

An answer covers that of a document if it has each of its members, with a value of the same type. Values that the
protocol fixes, such as `kind`, must be equal. An answer may have more members.
"""

from typing import Any

FIXED = frozenset({"jsonrpc", "kind", "role", "code", "final", "sparcPhase", "currentPhase", "requestedPhase"})
"""Members whose value is that of the document."""


def filled(value: Any, places: dict[str, Any]) -> Any:
    """Return an example with the values of a test in its places."""
    if isinstance(value, dict):
        return {name: filled(member, places) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(member, places) for member in value]
    return places.get(value, value) if isinstance(value, str) else value


def lacks(answer: Any, example: Any, *, besides: frozenset[str] = frozenset(), path: str = "") -> list[str]:
    """Return the paths of the example that the answer lacks, or has in another type. Those in `besides` are let out."""
    if path in besides:
        return []
    if isinstance(example, dict):
        if not isinstance(answer, dict):
            return [path]
        return [
            fault
            for name, member in example.items()
            for fault in (
                lacks(answer[name], member, besides=besides, path=f"{path}.{name}".lstrip("."))
                if name in answer
                else [f"{path}.{name}".lstrip(".")]
                if f"{path}.{name}".lstrip(".") not in besides
                else []
            )
        ]
    if isinstance(example, list):
        if not isinstance(answer, list) or (example and not answer):
            return [path]
        return lacks(answer[0], example[0], besides=besides, path=f"{path}[]") if example else []
    if _kind(answer) is not _kind(example):
        return [path]
    return [path] if path.rpartition(".")[2] in FIXED and answer != example else []


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)
