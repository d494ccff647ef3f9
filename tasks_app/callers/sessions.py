"""The scheme of sessions: users who are logged in to the admin, and whom an operator has linked to a principal.

It is for pages of this server. A browser sends cookies also with requests that other sites make, so a cookie counts
only in a request that has the CSRF token in a header, and that the browser calls same-origin (Fetch Metadata; without
that, the request must have our own Origin). In the handshake of a WebSocket no cookie counts.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Self

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.crypto import constant_time_compare
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.models import Device
from msgspec import Struct

from a2a.errors import InvalidKey
from tasks_app import clock
from tasks_app.callers.access import Caller, caller_for
from tasks_app.callers.pages import has_foreign_origin
from tasks_app.callers.schemes import Evidence, Scheme
from tasks_app.database.work import Work
from tasks_app.models import UserLink

NAME = "session"
LONGEST = 4_096
"""Characters of the longest Cookie header that is read."""


class FindUser(Work[Caller | None], Struct, frozen=True):
    """Finds the caller of a session; None for one that is over, or whose user is not linked to a principal."""

    lane = "read"
    repeatable = True

    session: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | None]:
        sessions = [_load(item.session) for item in items]
        ids = {int(session[SESSION_KEY]) for session in sessions if str(session.get(SESSION_KEY)).isdecimal()}
        links = UserLink.objects.select_related("user", "principal__tenant").in_bulk(ids, field_name="user_id")
        return [_caller(session, links) for session in sessions]


def _load(key: str) -> dict[str, Any]:
    """Return the content of a session; empty for one that does not exist or has expired."""
    values: dict[str, Any] = import_module(settings.SESSION_ENGINE).SessionStore(key).load()
    return values


def _caller(session: Mapping[str, Any], links: Mapping[int, UserLink]) -> Caller | None:
    link = links.get(int(session[SESSION_KEY])) if str(session.get(SESSION_KEY)).isdecimal() else None
    if link is None or not (link.user.is_active and link.user.is_staff):
        return None
    if not constant_time_compare(session.get(HASH_SESSION_KEY, ""), link.user.get_session_auth_hash()):
        return None  # The password was changed.
    now = clock.now().timestamp()
    began, last = float(session.get("began", now)), float(session.get("seen", now))
    ends = began + settings.A2A_SESSION_HOURS * 3600
    is_idle = now - last > settings.A2A_SESSION_IDLE_MINUTES * 60
    if now > ends or is_idle or not _has_second_factor(session, link):
        return None
    credential = f"user:{link.user_id}"
    return caller_for(link.principal, frozenset(link.scopes.split()), credential=credential, expires_at=ends)


def _has_second_factor(session: Mapping[str, Any], link: UserLink) -> bool:
    if not settings.A2A_SECOND_FACTOR:
        return True
    device = Device.from_persistent_id(session.get(DEVICE_ID_SESSION_KEY, ""))
    return bool(device and device.confirmed and device.user_id == link.user_id)


# ------------------------------------------------------------------- requests


def _read(meta: Mapping[str, Any]) -> Evidence | None:
    """Return the evidence of a request of one of our own pages; None for any other, whatever its cookies."""
    header, token = meta.get("HTTP_COOKIE", ""), meta.get(settings.CSRF_HEADER_NAME, "")
    if not header or not token or len(header) > LONGEST or not _is_of_our_page(meta):
        return None
    cookies = parse_cookie(header)
    session, secret = cookies.get(settings.SESSION_COOKIE_NAME), cookies.get(settings.CSRF_COOKIE_NAME)
    return Evidence(NAME, (session, secret, token)) if session and secret else None


def _is_of_our_page(meta: Mapping[str, Any]) -> bool:
    if "HTTP_SEC_WEBSOCKET_KEY" in meta or "websocket" in meta.get("HTTP_UPGRADE", "").lower():
        return False
    if has_foreign_origin(meta):
        return False
    origin, site = meta.get("HTTP_ORIGIN"), meta.get("HTTP_SEC_FETCH_SITE")
    return bool(site == "same-origin" if site is not None else origin)


class _Check(CsrfViewMiddleware):
    """Django's protection against forged requests, without its log: strangers could fill that."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        return HttpResponse(reason, status=403)


def _page(_request: HttpRequest) -> HttpResponse:
    return HttpResponse()


async def _prove(evidence: Evidence) -> FindUser:
    """Return the work item that finds the caller. Raises InvalidKey for a request without the right CSRF token."""
    session, secret, token = tuple(evidence.secret)
    request = HttpRequest()
    request.method = "POST"  # Reads need the token as well.
    request.COOKIES[settings.CSRF_COOKIE_NAME] = secret
    request.META[settings.CSRF_HEADER_NAME] = token
    check = _Check(_page)
    check.process_request(request)
    if check.process_view(request, _page, (), {}) is not None:
        raise InvalidKey
    return FindUser(session)


SCHEME = Scheme(
    name=NAME,
    method="session",
    cards=dict,  # It is of no use to programs, for which the cards are.
    credential="the session of a logged-in user",
    substitute="Session",
    read=_read,
    prove=_prove,
)
