"""Logins of operators: wrong ones are counted by user and by address, and followed by a wait that grows.

The counts are rows, so that all processes share them. A login counts as wrong before its password is looked at, and is
taken back when it was right: so many that come at once are not more than so many one after the other.
"""

import logging
import math
import unicodedata
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.signals import user_logged_in
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import F
from django.dispatch import receiver
from django.http import HttpRequest

from tasks_app import clock
from tasks_app.callers.peers import peer_of
from tasks_app.models import WrongLogins
from tasks_app.operators.audit import Change, Operator, write_down

log = logging.getLogger(__name__)
FIRST_WAIT, LONGEST_WAIT = 30.0, 900.0
"""Seconds of the first wait; each further wrong login doubles it, up to the longest."""
ADDRESS_SHARE = 4
"""An address has so many times the tries of a user: several people may share it."""
LONGEST = 150
KEPT = timedelta(days=30)
"""How long a row is kept after its newest try."""
FEWEST_CHARACTERS = 5
"""Different characters of a password."""


class Throttle:
    """The authentication backend that stands before Django's own: it lets nobody in, and keeps out who has to wait."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None
    ) -> None:
        """Count the try. Raises PermissionDenied, so that no password is looked at, while its user or its address is
        locked."""
        if request is not None and username and not begin(username, _address(request)):
            raise PermissionDenied


class LoginForm(AdminAuthenticationForm):
    """The form of the admin, which says how long to wait. It says the same of names that are no user's."""

    def get_invalid_login_error(self) -> ValidationError:
        """Return the sentence for a login that was refused."""
        seconds = wait(self.cleaned_data.get("username") or "", _address(self.request) if self.request else "")
        if not seconds:
            return super().get_invalid_login_error()
        return ValidationError(
            f"Too many wrong logins: wait {seconds} seconds before the next. "
            "An operator with a shell can end the wait: manage.py a2a logins unlock.",
            code="locked",
        )


class VariedPassword:
    """A rule for passwords: long is not enough if it is one character over and over."""

    def validate(self, password: str, user: Any = None) -> None:
        """Raises ValidationError."""
        if len(set(password)) < FEWEST_CHARACTERS:
            raise ValidationError(self.get_help_text(), code="password_not_varied")

    def get_help_text(self) -> str:
        """Return the sentence of the form."""
        return f"Your password must have at least {FEWEST_CHARACTERS} different characters."


def begin(user: str, address: str) -> bool:
    """Count a login as wrong until it is known to be right; False if its user or its address must wait."""
    now = clock.now()
    WrongLogins.objects.filter(last_at__lt=now - KEPT).delete()
    with transaction.atomic():
        rows = _rows(user, address, now)
        locked = [row for row in rows if row.locked_until and row.locked_until > now]
        if locked:
            WrongLogins.objects.filter(pk__in=[row.pk for row in locked]).update(refused=F("refused") + 1, last_at=now)
            return False
        for row in rows:
            row.running, row.total, row.last_at = row.running + 1, row.total + 1, now
            row.last_with = _named(address if row.kind == "user" else user)
            seconds = wait_after(row.kind, row.running)
            row.locked_until = now + timedelta(seconds=seconds) if seconds else None
            row.save()
    for row in rows:
        if row.locked_until:
            seconds = wait_after(row.kind, row.running)
            log.warning("logins of %r are locked for %d s after %d wrong ones", str(row), seconds, row.running)
    return True


def wait_after(kind: str, wrong: int) -> float:
    """Return the seconds of the wait after so many wrong logins in a row; 0 while there are tries left."""
    tries = settings.A2A_LOGIN_TRIES * (ADDRESS_SHARE if kind == "address" else 1)
    return 0.0 if wrong < tries else min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(wrong - tries, 30))


def wait(user: str, address: str) -> int:
    """Return the whole seconds until the user may try to log in from the address; 0 for at once."""
    now = clock.now()
    ends = [row.locked_until for row in _of(user, address) if row.locked_until and row.locked_until > now]
    return math.ceil((max(ends) - now).total_seconds()) if ends else 0


def unlock(value: str, by: Operator) -> list[WrongLogins]:
    """End the wait of a user or of an address, and give back all tries; return the rows as they were."""
    with transaction.atomic():
        rows = list(WrongLogins.objects.filter(value=_named(value)))
        WrongLogins.objects.filter(pk__in=[row.pk for row in rows]).update(running=0, locked_until=None)
        changes = [
            Change(
                row, {"running": row.running, "locked_until": row.locked_until}, {"running": 0, "locked_until": None}
            )
            for row in rows
        ]
        write_down(by, "unlock", *changes)
    return rows


@receiver(user_logged_in, dispatch_uid="logins")
def _succeeded(sender: Any, request: HttpRequest | None, user: Any, **_: Any) -> None:
    """Take back what was counted for a login that was right."""
    if request is None:
        return
    begun = clock.now()
    request.session["began"] = request.session["seen"] = begun.timestamp()
    address = _address(request)
    for row in _of(user.get_username(), address):
        if row.kind == "user" and row.running > 1:
            log.warning("%r logged in from %s after %d wrong logins", str(row), address or "?", row.running - 1)
        if row.total <= 1:
            row.delete()
            continue
        row.total, row.right_at = row.total - 1, begun
        row.running = 0 if row.kind == "user" else max(0, row.running - 1)
        row.locked_until = None
        row.save()


def _of(user: str, address: str) -> list[WrongLogins]:
    """Return the rows that there are."""
    found = WrongLogins.objects.filter(kind="user", value=_named(user))
    return [*found, *WrongLogins.objects.filter(kind="address", value=address)] if address else list(found)


def _rows(user: str, address: str, now: datetime) -> list[WrongLogins]:
    """Return the rows of the user and of the address, locked, always in this order."""
    values = {"user": _named(user)} | ({"address": address} if address else {})
    WrongLogins.objects.bulk_create(
        [WrongLogins(kind=kind, value=value, began_at=now, last_at=now) for kind, value in values.items()],
        ignore_conflicts=True,
    )
    return [WrongLogins.objects.select_for_update().get(kind=kind, value=value) for kind, value in values.items()]


def _named(name: str) -> str:
    """Return a name as it is counted: spellings that look alike are one."""
    return unicodedata.normalize("NFKC", name).casefold().replace("\0", "")[:LONGEST]


def _address(request: HttpRequest) -> str:
    """Return what stands for the address of a login: of IPv6 its network, for who has one address there has all of
    them. Empty where it is that of a proxy which is not trusted: it would lock everybody."""
    try:
        address = ip_address((peer_of(request) or "").partition("%")[0])
    except ValueError:
        return ""
    behind = "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META
    if behind and address.is_private and not settings.A2A_TRUSTED_PROXIES:
        return ""
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address)
