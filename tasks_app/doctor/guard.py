"""A guard for examinations: one that fails is a finding, and the others go on."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from django.db import connection

from tasks_app.doctor.finding import Finding
from tasks_app.log_fields import words_of
from tasks_app.masking import mask_trace

T = TypeVar("T")
LONGEST = 200
"""Characters of an error in a finding. Those of databases may quote what they could not read."""


def guard(
    findings: Iterable[T], name: str, *, kind: str = "doctor", subject: str | None = None
) -> Iterator[T | Finding]:
    """Yield findings, and a further one if their examination fails. Raises django.db.Error if the connection is lost.

    `name` is that of the rows that are examined. It is also the subject of the further finding, unless `subject` is the
    id of the only row.
    """
    try:
        yield from findings
    except Exception as error:  # noqa: BLE001  # one row that cannot be read must not hide what is wrong with others
        with connection.cursor() as cursor:
            cursor.execute("select 1")  # Without a connection the other examinations would fail, too.
        yield Finding(
            kind=kind,
            subject=subject or name,
            problem=f"The examination of {name} failed: {describe(error)}.",
            remedy="Keep a copy of the database and report it. The rows that were not reached are not examined.",
        )


def describe(error: Exception) -> str:
    """Return an error as one short line, with secrets masked."""
    return " ".join(mask_trace(words_of(error)).split())[:LONGEST]
