"""Answers that wait: for an earlier answer of their agent, for the end of a pause, or for news of their task.

A waiting answer has no place in any moderator. Its row says that it waits, and becomes due again once it can go on. The
end of an earlier answer, and the end of a pause, make it due in their own transactions. News of its task come as a
hint, and a look at the rows finds what hints missed.
"""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a.shared_streams import SharedStreamState
from tasks_app import clock
from tasks_app.models import AgentAnswer, Participant, Task

WINDOW = 2_000
"""Waiting answers that one look reads."""


def is_behind() -> Exists:
    """Return the condition that the agent of an answer owes an earlier one in the same stream."""
    return Exists(
        AgentAnswer.objects.filter(
            stream_id=OuterRef("stream_id"), agent=OuterRef("agent"), seq__lt=OuterRef("seq"), due_at__isnull=False
        )
    )


def busy_agents(stream_id: str) -> set[str]:
    """Return the agents that owe answers in a stream. Their next answers wait for these."""
    owed = AgentAnswer.objects.filter(stream_id=OuterRef("stream_id"), agent=OuterRef("name"), due_at__isnull=False)
    agents = Participant.objects.filter(Exists(owed), stream_id=stream_id, principal_id__isnull=True)
    return set(agents.values_list("name", flat=True))


def wait(answer_id: int, cursor: int) -> bool:
    """Let an answer wait. Return False if it is over, or another process has gone on with it."""
    now = clock.shared()
    rows = AgentAnswer.objects.filter(pk=answer_id, cursor=cursor, due_at__isnull=False)
    # A process of the version before looks at the due time alone.
    return bool(rows.update(waits_since=now, due_at=now + timedelta(seconds=settings.A2A_LEASE_SECONDS)))


def wake(rows: QuerySet[AgentAnswer]) -> int:
    """Make those of the answers due that wait, and return their number."""
    waiting = rows.filter(waits_since__isnull=False, due_at__isnull=False)
    return waiting.update(waits_since=None, due_at=clock.shared())


def wake_by_id(ids: list[int]) -> int:
    """Make these answers due if they wait, and return their number."""
    return wake(AgentAnswer.objects.filter(pk__in=ids))


def wake_stream(stream_id: str) -> int:
    """Make the answers of a stream due that waited for the end of its pause, and return their number."""
    return wake(AgentAnswer.objects.filter(~is_behind(), stream_id=stream_id))


def wake_next(stream_id: str, agent: str, seq: int) -> None:
    """Make the answer due that waited for the end of an agent's answer to the chunk `seq`."""
    later = AgentAnswer.objects.filter(stream_id=stream_id, agent=agent, seq__gt=seq, due_at__isnull=False)
    if (first := later.order_by("seq").values_list("pk", flat=True).first()) is not None:
        wake_by_id([first])


def look(after: int) -> tuple[list[int], int]:
    """Return the waiting answers that can go on, of the next WINDOW after an id, and the last id; 0 at their end."""
    news = Exists(Task.objects.filter(pk=OuterRef("task_id"), last_seq__gt=OuterRef("cursor")))
    can_go_on = Q(~is_behind(), Q(task_id__isnull=True) | Q(news), stream__state=SharedStreamState.ACTIVE.value)
    waiting = AgentAnswer.objects.filter(waits_since__isnull=False, due_at__isnull=False, pk__gt=after)
    rows = list(waiting.annotate(is_ready=can_go_on).order_by("pk").values_list("pk", "is_ready")[:WINDOW])
    return [pk for pk, is_ready in rows if is_ready], rows[-1][0] if len(rows) == WINDOW else 0
