"""The acts of operators on shared streams: to close one, and to pause and resume it."""

from collections.abc import Callable
from functools import partial

from django.db import transaction

from a2a.errors import SharedStreamClosed, SharedStreamNotFound
from a2a.shared_streams import SharedStreamState
from tasks_app.database.bridge import bridge
from tasks_app.models import SharedStream
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused
from tasks_app.shared_streams.log import Place, Write, append
from tasks_app.shared_streams.translation import state_entry

Act = Callable[[str, Operator], None]


def close(stream_id: str, by: Operator) -> None:
    """Close a shared stream for good. Raises ActRefused."""
    _move(stream_id, by, "close", SharedStreamState.CLOSED)


def pause(stream_id: str, by: Operator) -> None:
    """Pause a shared stream, until a participant or an operator resumes it. Raises ActRefused."""
    _move(stream_id, by, "pause", SharedStreamState.PAUSED)


def resume(stream_id: str, by: Operator) -> None:
    """Resume a shared stream that is paused. Raises ActRefused."""
    _move(stream_id, by, "resume", SharedStreamState.ACTIVE)


def _move(stream_id: str, by: Operator, verb: str, state: SharedStreamState) -> None:
    try:
        bridge.do(Write(partial(_write, stream_id, by, verb, state)))
    except SharedStreamNotFound:
        raise ActRefused("There is no such shared stream.") from None
    except SharedStreamClosed as error:
        raise ActRefused(f"It cannot be done: {error.facts.get('detail', 'it is closed')}.") from None


def _write(stream_id: str, by: Operator, verb: str, state: SharedStreamState) -> Place:
    """Append the chunk that sets the state, and record the act, in one transaction."""
    if "\0" in stream_id:
        raise SharedStreamNotFound(streamId=stream_id)
    with transaction.atomic():
        before = SharedStream.objects.filter(pk=stream_id).values_list("state", flat=True).first()
        entry = state_entry(f"operator:{by.name}"[:64], state, by.reason)
        place = append(stream_id, [entry])
        row = SharedStream.objects.get(pk=stream_id)
        record_acts(by, verb, Change(row, {"state": before}, {"state": state.value}))
    return place


ACTS: dict[str, Act] = {"close": close, "pause": pause, "resume": resume}
"""The acts by their verbs."""
