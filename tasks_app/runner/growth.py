"""The limits of what an agent may add to its task."""

from django.conf import settings

from a2a.events import ArtifactAdded, Event
from a2a.failures import Failure


def check_growth(characters: int, events: int) -> None:
    """Check that a task may have so many events, with so many characters in all. Raises Failure."""
    if (most := settings.A2A_TASK_CHARACTERS) < characters:
        raise Failure(f"The agent has written more than a task may hold: {most:,} characters.")
    if (most := settings.A2A_TASK_EVENTS) < events:
        raise Failure(f"The agent has written more than a task may hold: {most:,} events.")


def added_size(event: Event, size: int, together: Event | None) -> int:
    """Return the characters that an event adds to its task.

    They are its stored `size`, or only those of its text if it was merged into the event before, as `together`.
    """
    if together is None or not isinstance(event, ArtifactAdded):
        return size
    return sum(len(part.text or "") for part in event.artifact.parts)
