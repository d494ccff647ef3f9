"""Pauses of work that waits for a limit: items of batches, tasks of workflows, and answers in shared streams."""

from django.conf import settings


def shorten(seconds: float) -> float:
    """Return the pause after a refusal that asks for one of so many seconds: no more than the time of a round.

    How long a limit will hold is a guess. It may be free as soon as other tasks of the owner have ended, and one try
    costs little.
    """
    return min(seconds, settings.A2A_SWEEP_SECONDS)
