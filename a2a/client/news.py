"""The difference between two states of a task, as events. A stream without ids needs them after a broken connection."""

from collections.abc import Iterator

from msgspec.structs import replace

from a2a.events import ArtifactAdded, StatusChanged, continues
from a2a.types import Artifact, Part, Task


def news(old: Task, new: Task) -> Iterator[StatusChanged | ArtifactAdded]:
    """Yield the events that lead from one state of a task to a later one."""
    before = {artifact.artifact_id: artifact for artifact in old.artifacts}
    for artifact in new.artifacts:
        event = _change(before.get(artifact.artifact_id), artifact)
        if event is not None:
            yield event
    if new.status != old.status:
        yield StatusChanged(status=new.status)


def _change(old: Artifact | None, new: Artifact) -> ArtifactAdded | None:
    """Return the event for an artifact: its new parts if the old ones are its beginning, else all of its parts."""
    if old is None:
        return ArtifactAdded(artifact=new)
    parts = _joined(new.parts)
    rest = _rest(_joined(old.parts), parts)
    if rest is None or replace(new, parts=old.parts) != old:
        return ArtifactAdded(artifact=new)
    return ArtifactAdded(artifact=replace(new, parts=rest), append=True) if rest else None


def _rest(old: tuple[Part, ...], new: tuple[Part, ...]) -> tuple[Part, ...] | None:
    """Return the new parts; None if the old ones are not the beginning."""
    if len(new) < len(old) or new[: len(old) - 1] != old[:-1]:
        return None
    if not old or new[len(old) - 1] == old[-1]:
        return new[len(old) :]
    last, longer = old[-1], new[len(old) - 1]
    if not continues(last, longer) or not (longer.text or "").startswith(last.text or ""):
        return None
    piece = replace(longer, text=(longer.text or "")[len(last.text or "") :])
    return (piece, *new[len(old) :])


def _joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts with neighbouring texts joined, since some servers store each chunk as a part.

    The pieces of a text are joined once: a join for each piece would take quadratic time.
    """
    firsts: list[Part] = []
    texts: list[list[str]] = []
    for part in parts:
        if firsts and continues(firsts[-1], part):
            texts[-1].append(part.text or "")
        else:
            firsts.append(part)
            texts.append([part.text or ""])
    return tuple(
        replace(first, text="".join(pieces)) if len(pieces) > 1 else first
        for first, pieces in zip(firsts, texts, strict=True)
    )
