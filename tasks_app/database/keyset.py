"""Keyset paging: a page begins behind the last row of the page before, which its position names by the columns that
order the list.

So a page deep in a list costs what the first one does, and rows that come or go meanwhile repeat or hide no others.
"""

from datetime import datetime
from functools import cache
from typing import TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet
from msgspec import Struct

from a2a.errors import InvalidParams
from tasks_app.database.sql import sql_time

M = TypeVar("M", bound=Model)
Parameter = datetime | str | int | list[str]
"""A parameter of a statement."""


class Position(Struct, frozen=True):
    """The place behind a row in a list that is ordered by a time."""

    at: datetime
    id: str


class Keyset(Struct, frozen=True, kw_only=True):
    """The order of a list, by a time and among equal times by id; and its page tokens.

    A token is a signed position, bound to the one list that it was made for: to its owner and its filters.
    """

    time: str
    """The column of the time."""
    newest_first: bool
    salt: str
    """The salt of the signatures: no other kind of list takes its tokens."""
    mismatch: str
    """The refusal of a token that was made for another list of this kind."""

    def sql_after(self, position: Position, table: str) -> tuple[str, list[Parameter]]:
        """Return the SQL condition of the rows behind a position, and its parameters.

        The first comparison alone bounds the range of an index; the second leaves out the rows up to the position.
        """
        column, sign = f"{table}.{self.time}", "<" if self.newest_first else ">"
        at = sql_time(position.at)
        return f"{column} {sign}= %s and ({column} {sign} %s or {table}.id > %s)", [at, at, position.id]

    def after(self, position: Position) -> Q:
        """Return the same condition for a queryset."""
        sign = "lt" if self.newest_first else "gt"
        beyond = Q(**{f"{self.time}__{sign}": position.at}) | Q(id__gt=position.id)
        return Q(**{f"{self.time}__{sign}e": position.at}) & beyond

    def encode(self, position: Position, binding: str) -> str:
        """Return the token of the page behind a position."""
        return _signer(self.salt).sign_object([position.at.isoformat(), position.id, binding])

    def decode(self, token: str, binding: str) -> Position:
        """Return the position of a token. Raises InvalidParams for a token of another list or of another server."""
        try:
            at, id, token_binding = _signer(self.salt).unsign_object(token)
        except (signing.BadSignature, ValueError):
            raise InvalidParams(("pageToken", "is not a token of this server; begin again without one")) from None
        if token_binding != binding:
            raise InvalidParams(("pageToken", self.mismatch))
        return Position(datetime.fromisoformat(at), id)


@cache
def _signer(salt: str) -> signing.TimestampSigner:
    """Return the signer of a salt. signing.dumps() makes one for each token, which takes as long as to sign it."""
    return signing.TimestampSigner(salt=salt)


def older_than(rows: QuerySet[M], id: str) -> QuerySet[M]:
    """Return the rows below an id in a list by descending id; all rows for an empty id."""
    return rows.filter(pk__lt=id) if id else rows


def fetch_page(rows: QuerySet[M], size: int) -> tuple[list[M], bool]:
    """Return up to `size` rows, and whether there are more."""
    page = list(rows[: size + 1])
    return page[:size], len(page) > size
