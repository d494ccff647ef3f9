"""Errors of the database in the words of its callers."""

from django.conf import settings
from django.db import OperationalError

from a2a.errors import Unavailable
from tasks_app.database.sessions import overloaded, spent, too_slow


class Busy(Unavailable, OperationalError):
    """The database did not do it in time. Callers are asked to come again; to work of our own it is a database that
    does not answer."""


def error_for_callers(error: Exception) -> Exception:
    """Return the error that callers get: Busy for an error of the database that passes."""
    if too_slow(error):
        busy = Busy(detail=f"it was given up after {settings.A2A_READ_SECONDS:g} s: ask for less at once")
    elif spent(error) or overloaded(error):
        busy = Busy(detail="the database refuses it at the moment")
    else:
        return error
    busy.__cause__ = error
    return busy
