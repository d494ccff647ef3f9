"""The server of oauthlib with the grants that we have, and its bridge to Django."""

import re
from typing import Any

from django.http import HttpRequest, QueryDict
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauthlib.oauth2 import (
    AuthorizationCodeGrant,
    AuthorizationEndpoint,
    BearerToken,
    ClientCredentialsGrant,
    RefreshTokenGrant,
    RevocationEndpoint,
    TokenEndpoint,
)
from oauthlib.oauth2.rfc6749.errors import InvalidRequestError
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256

from tasks_app.callers.peers import origin_in
from tasks_app.cards.addresses import address_of
from tasks_app.oauth.secrets import checksum
from tasks_app.operators.audit import ADMIN, operator_of

ADDRESS, APPROVER, ORIGIN = "X-Taskdesk-Address", "X-Taskdesk-Approver", "X-Taskdesk-Origin"
"""Names under which oauthlib's requests carry our base address, the operator at the page, and the address for limits.
Django's names of headers differ, so no client can send them."""
PARAMETERS = frozenset(
    {
        *("response_type", "response_mode", "client_id", "client_secret", "redirect_uri", "scope", "state"),
        *("grant_type", "code", "code_challenge", "code_challenge_method", "code_verifier", "refresh_token"),
        *("resource", "token", "token_type_hint"),
    }
)
"""The parameters that are read. All others are ignored (RFC 6749, 3.1 and 3.2): oauthlib and the toolkit keep values of
their own under further names, and a parameter of such a name would take the place of one."""
GRANTS = "It must be authorization_code, client_credentials or refresh_token."
"""The sentence about the grant types that there are."""
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
"""The form of every code challenge of S256 (RFC 7636, 4.2)."""


class CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]  # oauthlib ships no types
    """The grant of authorization codes, always with PKCE and S256."""

    _code_challenge_methods = {"S256": code_challenge_method_s256}  # noqa: RUF012  # the base class reads it

    def validate_authorization_request(self, request: Any) -> Any:
        """Check the request of a browser, and the form of its challenge. Raises OAuth2Error."""
        # oauthlib would answer in the fragment, also with errors. The metadata has one mode, and so has `iss`.
        mode, request.response_mode = request.response_mode, "query"
        result = super().validate_authorization_request(request)
        if PARAMETERS.intersection(request.duplicate_params) - {"resource"}:
            raise InvalidRequestError(description="A parameter is given more than once.", request=request)
        if mode not in {None, "query"}:
            raise InvalidRequestError(description="The response_mode is not query.", request=request)
        if not _CHALLENGE.fullmatch(request.code_challenge or ""):
            raise InvalidRequestError(description="The code_challenge is not one of S256.", request=request)
        return result

    def validate_token_request(self, request: Any) -> None:
        """Check the request of a client. One without a grant type comes here, as do all unknown ones. Raises
        OAuth2Error."""
        if not request.grant_type:  # RFC 6749, 5.2: a missing parameter is not an unsupported grant.
            raise InvalidRequestError(description=f"The grant_type is missing. {GRANTS}", request=request)
        super().validate_token_request(request)


class Server(AuthorizationEndpoint, TokenEndpoint, RevocationEndpoint):  # type: ignore[misc]  # no types
    """The endpoints with the only grants that there are. All others are answered as unsupported."""

    def __init__(
        self,
        request_validator: Any,
        token_expires_in: Any = None,
        token_generator: Any = None,
        refresh_token_generator: Any = None,
        **_: Any,
    ) -> None:
        code = CodeGrant(request_validator)
        bearer = BearerToken(request_validator, token_generator, token_expires_in, refresh_token_generator)
        grants = {
            "authorization_code": code,
            "client_credentials": ClientCredentialsGrant(request_validator),
            "refresh_token": RefreshTokenGrant(request_validator),
        }
        AuthorizationEndpoint.__init__(
            self, default_response_type="code", response_types={"code": code}, default_token_type=bearer
        )
        TokenEndpoint.__init__(
            self, default_grant_type="authorization_code", grant_types=grants, default_token_type=bearer
        )
        RevocationEndpoint.__init__(self, request_validator)


class Core(OAuthLibCore):  # type: ignore[misc]  # the toolkit ships no types
    """The bridge from Django's requests to oauthlib's."""

    def extract_headers(self, request: HttpRequest) -> dict[str, Any]:
        """Return the headers, with what the validator needs to know of the request."""
        headers: dict[str, Any] = super().extract_headers(request)
        own = {ADDRESS: address_of(request), APPROVER: operator_of(request, ADMIN), ORIGIN: origin_in(request.META)}
        return headers | own

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        """Return the form with the digest of an authorization code in its place, as codes are stored."""
        return [
            (name, checksum(value) if name == "code" else value)
            for name, value in super().extract_body(request)
            if name in PARAMETERS and value  # One without a value counts as left out (RFC 6749, 3.2).
        ]

    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        """Return the path and the query, encoded again: oauthlib fails at a % without two digits behind it."""
        query = request.GET.urlencode()
        return f"{request.path}?{query}" if query else request.path


def find_repeated(form: QueryDict) -> str | None:
    """Return the name of a parameter that a form has more than once (RFC 6749, 3.2); None if there is none.

    A client may ask for several resources (RFC 8707, 2).
    """
    return next((name for name in sorted(PARAMETERS - {"resource"}) if len(form.getlist(name)) > 1), None)


def parameters_in(query: QueryDict) -> QueryDict:
    """Return the parameters of a query that are read and have a value (RFC 6749, 3.1)."""
    parameters = QueryDict(mutable=True)
    for name, values in query.lists():
        if name in PARAMETERS and any(values):
            parameters.setlist(name, [value for value in values if value])
    return parameters
