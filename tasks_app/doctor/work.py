"""Findings about stuck work: expired leases, tasks that no worker runs, webhooks that no process sends to."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from a2a.agents import registry
from a2a.states import TERMINAL, TaskState
from tasks_app.batches.rows import BATCH_AGENT
from tasks_app.doctor.finding import SWEEPER, Finding
from tasks_app.doctor.guard import guard
from tasks_app.models import Delivery, SlackQuestion, Task, Webhook
from tasks_app.models.states import DeliveryState, WebhookState

LATE = timedelta(seconds=60)
"""How late work may be before it is a finding. A busy server is late for a moment without a fault."""
AHEAD = timedelta(hours=1)
"""How far a time may be beyond every time that a process here would write. Other processes may have other settings."""
MOST = 20
"""Findings of one kind that are listed. More of them would say nothing new."""


def examine_work(now: datetime) -> Iterator[Finding]:
    """Yield findings about stuck work. `now` is the time by the database's clock."""
    yield from guard(_find_leases(now), "leases")
    yield from guard(_find_times_ahead(now), "times of tasks")
    yield from guard(_find_waiting(now), "waiting tasks")
    yield from guard(_find_webhooks(now), "webhooks")
    yield from guard(_find_slack_questions(now), "questions from Slack")


def overdue_since(now: datetime) -> datetime:
    """Return the time before which whatever was due should have been done by a sweep."""
    return now - timedelta(seconds=3 * settings.A2A_SWEEP_SECONDS) - LATE


def _find_leases(now: datetime) -> Iterator[Finding]:
    """Yield working tasks whose lease or deadline is long over, or that have no lease."""
    since = overdue_since(now)
    working = Task.objects.filter(state=TaskState.WORKING.value)
    late = Q(lease_until__lt=since) | Q(lease_until__isnull=False, deadline__lt=since)
    for task in _some(working.filter(late)):
        yield Finding(
            kind="lease",
            subject=task.id,
            problem=f"Task {task.id} of agent {task.agent}: the lease of {task.lease_owner} is over, and no "
            f"process has taken the task up.",
            remedy=SWEEPER,
        )
    for task in _some(working.filter(lease_until=None, status_at__lt=now - LATE).exclude(agent=BATCH_AGENT)):
        yield Finding(
            kind="task",
            subject=task.id,
            problem=f"Task {task.id} of agent {task.agent} is working, but no worker has a lease on it.",
            remedy=f"Cancel it: manage.py tasks cancel {task.id}.",
        )


def _find_times_ahead(now: datetime) -> Iterator[Finding]:
    """Yield unfinished tasks whose lease ends far in the future, or that changed there. No sweep reaches them."""
    end = now + timedelta(seconds=settings.A2A_LEASE_SECONDS) + AHEAD
    for task in _some(Task.objects.filter(state=TaskState.WORKING.value, lease_until__gt=end)):
        yield Finding(
            kind="lease",
            subject=task.id,
            problem=f"Task {task.id} of agent {task.agent}: the lease of {task.lease_owner} ends at "
            f"{task.lease_until:%Y-%m-%d %H:%M:%S} UTC, later than any process sets. Until then no worker takes it up.",
            remedy=f"If no agent works on it, cancel it: manage.py tasks cancel {task.id}. Find out what wrote to the "
            f"database, or which clock is wrong.",
        )
    unfinished = [state.value for state in TaskState if state not in TERMINAL]  # An index has them; not all tasks.
    for task in _some(Task.objects.filter(state__in=unfinished, status_at__gt=now + AHEAD)):
        yield Finding(
            kind="task",
            subject=task.id,
            problem=f"Task {task.id} of agent {task.agent} changed its state at {task.status_at:%Y-%m-%d %H:%M:%S} "
            f"UTC, which is in the future. Until then nothing finds that it waits too long.",
            remedy="Find out what wrote to the database, or which clock was wrong.",
        )


def _find_waiting(now: datetime) -> Iterator[Finding]:
    """Yield submitted tasks that no worker has claimed."""
    waiting = Task.objects.filter(state=TaskState.SUBMITTED.value, status_at__lt=now - LATE)
    for task in _some(waiting.exclude(not_before__gt=now - LATE)):
        since = f"for {(now - max(task.status_at, task.not_before or task.status_at)).total_seconds():.0f} s"
        agent = registry.get(task.agent)
        if agent is None:
            problem = f"Task {task.id} waits {since} for agent {task.agent}, which this installation does not have."
            remedy = "Add the module of the agent to A2A_AGENT_MODULES, or cancel the task."
        else:
            problem = f"Task {task.id} of agent {task.agent} waits {since} to be run."
            remedy = f"Start workers of queue {task.queue}, or more of them."
            if agent.concurrency:
                remedy = f"{remedy} If its concurrency={agent.concurrency} is reached, raise it."
        yield Finding(kind="task", subject=task.id, problem=problem, remedy=remedy)


def _find_webhooks(now: datetime) -> Iterator[Finding]:
    """Yield webhooks that are overdue, or that have waiting deliveries but no time to send them."""
    active = Webhook.objects.filter(state=WebhookState.ACTIVE)
    for webhook in active.filter(due_at__lt=now - LATE).order_by("due_at")[:MOST]:
        yield Finding(
            kind="delivery",
            subject=webhook.id,
            problem=f"Webhook {webhook.id} has been due since {webhook.due_at:%Y-%m-%d %H:%M:%S} UTC, and no process "
            f"has sent to it.",
            remedy="Start a server or a worker. If one runs, its sender is too slow or has ended: see /readyz.",
        )
    waits = Delivery.objects.filter(webhook_id=OuterRef("id"), state=DeliveryState.WAITING)
    orphans = Delivery.objects.filter(state=DeliveryState.WAITING, created_at__lt=now - LATE)
    stuck = active.filter(Exists(waits), due_at=None, pk__in=orphans.values("webhook_id"))
    for webhook in stuck.order_by("id")[:MOST]:
        yield Finding(
            kind="delivery",
            subject=webhook.id,
            problem=f"Webhook {webhook.id} has waiting deliveries, but no time at which they are sent.",
            remedy="Send one of them again: manage.py deliveries retry ID.",
        )


def _some(rows: QuerySet[Task]) -> QuerySet[Task]:
    columns = rows.only("id", "agent", "queue", "lease_owner", "lease_until", "deadline", "status_at", "not_before")
    return columns.order_by("id")[:MOST]


def _find_slack_questions(now: datetime) -> Iterator[Finding]:
    """Yield questions from Slack that no process goes on with, although they are due."""
    rows = SlackQuestion.objects.filter(due_at__lt=now - LATE, workspace__disabled_at__isnull=True)
    for row in rows.order_by("due_at")[:MOST]:
        yield Finding(
            kind="slack",
            subject=row.pk,
            problem=f"Question {row.pk} from Slack has been due since {row.due_at:%Y-%m-%d %H:%M:%S} UTC, and no "
            f"process has answered it.",
            remedy="Start a server with A2A_SLACK=true and the extra slack, or drop it: manage.py a2a slack drop "
            f"{row.pk}.",
        )
