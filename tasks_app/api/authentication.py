"""Authentication in the operators' API: by a token of an operator, or by a session of the admin."""

from typing import Any

from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from a2a.errors import TooManyCalls
from tasks_app.callers.peers import origin_in, peer_in
from tasks_app.exchanges.refusals import count_wrong
from tasks_app.models import OperatorToken
from tasks_app.operators.second_factor import is_satisfied
from tasks_app.operators.tokens import find_token, is_stored

CHALLENGE = 'Bearer realm="operators"'


class ByToken(BaseAuthentication):
    """Authenticates by `Authorization: Bearer` with a token of an operator."""

    def authenticate(self, request: Request) -> tuple[Any, OperatorToken] | None:
        """Return the user and the token; None for a request without one."""
        scheme, _, value = get_authorization_header(request).decode("latin1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = value.strip()
        row = find_token(token) if is_stored(token) else None
        if row is None:
            _count_failure(request)
            raise AuthenticationFailed(
                "The token is unknown, expired or revoked, or its user is no operator any more. "
                "`manage.py a2a operators token NAME` makes one; API keys of callers are not accepted here."
            )
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def _count_failure(request: Request) -> None:
    """Count a wrong token of the address. Raises Throttled for one too many.

    A right token from the same address is accepted all the same: a guesser must not lock out its neighbours.
    """
    try:
        count_wrong(origin_in(request.META), peer_in(request.META))
    except TooManyCalls as error:
        raise Throttled(error.retry_after) from None


class BySession(SessionAuthentication):
    """Authenticates by a session of the admin, with Django's protection against forged requests."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        """Return the user; None for a request without a session of an operator."""
        user: Any = getattr(request._request, "user", None)
        if user is None or not user.is_active or not user.is_staff:
            return None
        self.enforce_csrf(request)
        if not is_satisfied(user):
            raise AuthenticationFailed("This session has not given its second factor: open a page of the admin first.")
        return user, None
