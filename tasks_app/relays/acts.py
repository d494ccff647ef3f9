"""The acts of operators on relays: to store the credentials for a remote agent, and to delete them.

Each records an act in the transaction of its change. No answer and no log has a secret.
"""

import re
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from msgspec import Struct

from tasks_app.callers.wrong_values import WrongValue
from tasks_app.masking import site
from tasks_app.models import Relay, RelayedTask
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused
from tasks_app.relays.credentials import StoredCredentials, open_credentials
from tasks_app.sealing import Unreadable

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""The name of a header (RFC 9110, 5.6.2)."""
LONGEST_SECRET = 8_192
"""Characters of a secret. Servers refuse larger headers."""


class Login(Struct, frozen=True, kw_only=True):
    """The credentials that an operator gives. The secret is a bearer token, unless there is a header or a token URL."""

    secret: str
    header: str = ""
    """The header that has the secret."""
    token_url: str = ""
    """The address for tokens by the client credentials grant of OAuth 2; the secret is then the client's."""
    client_id: str = ""
    token_scopes: str = ""
    """Scopes for the token URL, separated by spaces."""


def rows() -> QuerySet[Relay]:
    """Return the rows of the relays in A2A_RELAYS. Each has one once a process has looked for its card."""
    return Relay.objects.filter(name__in=settings.A2A_RELAYS)


def log_in(row: Relay, wish: Login, by: Operator) -> None:
    """Store credentials, sealed, in place of former ones. Raises WrongValue."""
    _store(row, _credentials_of(wish).sealed(), "login", by)


def log_out(row: Relay, by: Operator) -> None:
    """Delete the credentials of a relay. Raises ActRefused if it has none."""
    if not row.credentials:
        raise ActRefused(f"The relay {row.name!r} has no credentials; `manage.py a2a relays list` prints all relays.")
    _store(row, "", "logout", by)


def describe(row: Relay) -> dict[str, Any]:
    """Return the columns of a relay that operators may see."""
    return {
        "name": row.name,
        "url": site_of(row),
        "credentials": kind_of(row),
        "card_read_at": row.read_at,
        "card_due_at": row.due_at,
        "problem": row.problem,
        "open_tasks": count_open(row),
    }


def site_of(row: Relay) -> str:
    """Return the scheme and host of the address of a relay; empty if it is in A2A_RELAYS no more."""
    relay = settings.A2A_RELAYS.get(row.name)
    return site(relay["url"]) if relay else ""


def count_open(row: Relay) -> int:
    """Return how many remote tasks of a relay may go on."""
    return RelayedTask.objects.filter(relay=row.name, is_open=True).count()


def kind_of(row: Relay) -> str:
    """Return the kind of the credentials: bearer, header, oauth, or unreadable; empty for none."""
    try:
        return open_credentials(row.credentials).kind if row.credentials else ""
    except Unreadable:
        return "unreadable"


def _credentials_of(wish: Login) -> StoredCredentials:
    if bool(wish.token_url) is not bool(wish.client_id):
        raise WrongValue("client_id" if wish.token_url else "token_url", "a token URL and a client id belong together")
    if wish.token_url and wish.header:
        raise WrongValue("header", "a header and a token URL exclude each other")
    if wish.token_url:
        from tasks_app.outbound.policy import Blocked, target  # loads httpx, which commands that look never need

        try:
            target(wish.token_url)
        except Blocked as error:
            raise WrongValue("token_url", f"the token URL {error}") from None
    if wish.header and not _HEADER.fullmatch(wish.header):
        raise WrongValue("header", "this is no name of a header, such as X-API-Key")
    if not (wish.secret.isascii() and wish.secret.isprintable() and 0 < len(wish.secret) <= LONGEST_SECRET):
        raise WrongValue("secret", "the secret is empty, too long, or has characters that no HTTP header can carry")
    return StoredCredentials(
        kind="oauth" if wish.token_url else "header" if wish.header else "bearer",
        secret=wish.secret,
        header=wish.header,
        token_url=wish.token_url,
        client_id=wish.client_id,
        scopes=tuple(wish.token_scopes.split()),
    )


def _store(row: Relay, sealed: str, verb: str, by: Operator) -> None:
    before = kind_of(row)
    row.credentials, row.due_at = sealed, None  # The card is read again, now with these credentials.
    with transaction.atomic():  # no change without its act
        row.save(update_fields=["credentials", "due_at"])
        record_acts(by, verb, Change(row, {"credentials": before}, {"credentials": kind_of(row)}))
