"""Findings about stored budgets: money that is reserved for nothing, and sums that differ from the reservations."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Sum, Value
from django.db.models.functions import Coalesce

from a2a.money import show_usd
from a2a.states import TERMINAL
from tasks_app.doctor.finding import REPORT, SWEEPER, Finding
from tasks_app.doctor.guard import guard
from tasks_app.doctor.work import MOST, overdue_since
from tasks_app.event_log import ORPHAN_AFTER
from tasks_app.ids import uuid7_at
from tasks_app.models import Budget, DrawnCost, Reservation, Task


def examine_budgets(now: datetime) -> Iterator[Finding]:
    """Yield findings about budgets and their reservations. `now` is the time by the database's clock.

    Each look is one statement, which sees budgets and reservations as of the same moment.
    """
    yield from guard(_find_sums(), "budgets")
    yield from guard(_find_ended(), "reservations of tasks that have ended")
    yield from guard(_find_orphans(now), "reservations without a task")
    yield from guard(_find_costs(now), "costs of calls that drew on advances")


def _find_sums() -> Iterator[Finding]:
    """Yield budgets that reserve another amount than their reservations together."""
    budgets = Budget.objects.annotate(sum=Coalesce(Sum("reservations__amount"), Value(0)))
    for budget in budgets.exclude(reserved=F("sum")).order_by("id")[:MOST]:
        yield Finding(
            kind="budget",
            subject=str(budget.pk),
            problem=f"Budget {budget.pk} reserves {show_usd(budget.reserved)} USD, but its reservations are "
            f"{show_usd(budget.sum)} USD together.",
            remedy=REPORT,
        )


def _find_ended() -> Iterator[Finding]:
    """Yield reservations of tasks that have ended: the end of a task gives its reservation back."""
    rows = Reservation.objects.filter(task__state__in=[state.value for state in TERMINAL])
    for row in rows.order_by("task_id", "budget_id")[:MOST]:
        yield _finding(row, f"task {row.task_id}, which has ended", REPORT)


def _find_orphans(now: datetime) -> Iterator[Finding]:
    """Yield reservations of calls that stored no task, if they should have been given back, or never will be."""
    rows = Reservation.objects.filter(~Exists(Task.objects.filter(pk=OuterRef("task_id"))))
    for row in rows.filter(orphan_at=None).order_by("task_id", "budget_id")[:MOST]:
        yield _finding(row, f"task {row.task_id}, which does not exist", REPORT)
    for row in rows.filter(orphan_at__lt=overdue_since(now)).order_by("orphan_at")[:MOST]:
        due = f"{row.orphan_at:%Y-%m-%d %H:%M:%S} UTC"
        yield _finding(row, f"a call that has ended, which should have been given back at {due}", SWEEPER)


def _find_costs(now: datetime) -> Iterator[Finding]:
    """Yield budgets that should have been charged for calls whose advance is given back."""
    since = uuid7_at(overdue_since(now) - ORPHAN_AFTER)
    given_back = ~Exists(Reservation.objects.filter(task_id=OuterRef("advance")))
    rows = DrawnCost.objects.filter(given_back, advance__lt=since).values("budget_id").annotate(sum=Sum("spent"))
    for row in rows.order_by("budget_id")[:MOST]:
        yield Finding(
            kind="budget",
            subject=str(row["budget_id"]),
            problem=f"Budget {row['budget_id']} is not charged {show_usd(row['sum'])} USD that calls of quick agents "
            f"have cost.",
            remedy=SWEEPER,
        )


def _finding(row: Reservation, holder: str, remedy: str) -> Finding:
    """Return the finding about a reservation, for what holds it."""
    problem = f"Budget {row.budget_id} reserves {show_usd(row.amount)} USD for {holder}."
    return Finding(kind="budget", subject=str(row.budget_id), problem=problem, remedy=remedy)
