"""State of the process that tests would leave to the tests after them, which may be any others.

SQLite gives an id again after a rollback, so that a later test may have an owner with the id of an earlier one. What
makes the process report troubles would be a finding of each test of its health.
"""

from tasks_app.callers.access import misses
from tasks_app.exchanges.backlog import Backlog
from tasks_app.exchanges.recording import recorder
from tasks_app.files import outage
from tasks_app.limits import budgets, strangers
from tasks_app.limits.quotas import quota
from tasks_app.limits.turns import turns
from tasks_app.operations import list_totals
from tasks_app.operations.webhooks import registrations
from tasks_app.runner.doors import doors
from tasks_app.upkeep import routine
from tasks_app.upkeep.processes import process_row


def forget() -> None:
    """Forget what a process that was just started does not know."""
    _forget_owners()
    _forget_floods()
    _forget_troubles()


def _forget_owners() -> None:
    """Forget what the process knows of owners by their ids: estimates, budgets, quotas and registrations; and when one
    has called."""
    list_totals._estimates.clear()
    budgets.forget()
    registrations.levels.clear()
    quota.since.clear()
    turns.last_at = float("-inf")
    if quota.counted is not None:
        quota.counted = {}


def _forget_floods() -> None:
    """Forget floods of wrong credentials, which last for some seconds or a minute."""
    misses.now = misses.before = 0
    strangers.barrier.until = 0.0


def _forget_troubles() -> None:
    """Forget what the process reports among its troubles long after its cause is gone."""
    recorder.backlog = Backlog()
    outage.failed_at = None
    routine.failures.clear()
    doors.log_time = float("-inf")
    process_row.gap, process_row.lag = "", None
