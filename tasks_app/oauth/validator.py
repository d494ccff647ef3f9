"""The rules of our OAuth server: who a client is, which codes, tokens and addresses are valid, and what is stored."""

import base64
import binascii
import hmac
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_plus
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from oauth2_provider.models import AccessToken, Grant, RefreshToken, redirect_to_uri_allowed
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from tasks_app import clock
from tasks_app.callers.access import digests
from tasks_app.exchanges.refusals import count_wrong
from tasks_app.limits.rates import LEAST_COST, SEND_COST
from tasks_app.models import OAuthClient
from tasks_app.models.clients import CONFIDENTIAL, PUBLIC
from tasks_app.oauth.entries import ISSUE, REUSE, REVOKE, record
from tasks_app.oauth.limits import spend
from tasks_app.oauth.resources import agent_of
from tasks_app.oauth.scheme import is_operator
from tasks_app.oauth.secrets import checksum, family_of
from tasks_app.oauth.server import ADDRESS, APPROVER, ORIGIN
from tasks_app.operators.audit import Change, record_acts

CODE_SECONDS = 60
"""Seconds for which an authorization code is valid."""
LONGEST = 512
"""Characters of a client's id or secret that are examined."""


class Reused(Exception):
    """Raised when two requests use a refresh token at once."""


class Validator(OAuth2Validator):  # type: ignore[misc]  # the toolkit ships no types
    """The rules, where they differ from those of the toolkit."""

    # -------------------------------------------------------------- clients

    def _load_application(self, client_id: str | None, request: Any) -> OAuthClient | None:
        """Set the client of the request, and return it; None for a client that is unknown, disabled or revoked."""
        client: OAuthClient | None = request.client
        if not isinstance(client, OAuthClient) or client.client_id != client_id:
            client = _find_client(client_id or "")
        client = client if client is not None and client.is_active else None
        request.client = client
        return client

    def authenticate_client(self, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return whether the request has the secret of a confidential client. Raises TooManyCalls.

        A digest is enough, because secrets are random. So a wrong one costs one lookup, and no slow hash.
        """
        client_id, secret = self._read_credentials(request)
        client = self._load_application(client_id, request)
        if client is None or client.client_type != CONFIDENTIAL or not 0 < len(secret) <= LONGEST:
            return False
        stored = client.digests(clock.now())
        if not any(hmac.compare_digest(ours, theirs) for ours in stored for theirs in digests(secret)):
            return False
        # A grant stores a token and an entry of the audit, so it costs as much as a message.
        spend(client, SEND_COST if request.grant_type else LEAST_COST, request.headers[APPROVER].peer)
        return True

    def _read_credentials(self, request: Any) -> tuple[str, str]:
        """Return the id and the secret of a client: from the header, or else from the form (RFC 6749, 2.3.1)."""
        basic, form = self._extract_basic_auth(request), getattr(request, "client_secret", None)
        if not basic:
            return request.client_id or "", form or ""
        try:
            pair = base64.b64decode(basic, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        client_id, secret = map(unquote_plus, pair.partition(":")[::2])
        # One request has one method of authentication (RFC 6749, 2.3), and one client.
        is_one = not form and request.client_id in {None, client_id}
        return (client_id, secret) if is_one else ("", "")

    def _extract_basic_auth(self, request: Any) -> str | None:
        """Return the credentials of `Authorization: Basic`, in whatever case (RFC 9110, 11.1); None without any."""
        scheme, _, credentials = request.headers.get("HTTP_AUTHORIZATION", "").partition(" ")
        return credentials.strip() or None if scheme.lower() == "basic" else None

    def validate_redirect_uri(self, client_id: str, redirect_uri: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Return whether the URI is one of the client's, character by character.

        A program on its user's machine may use any port of a loopback address (RFC 8252, 7.3).
        """
        uris = request.client.redirect_uris.split()
        is_native = request.client.client_type == PUBLIC and redirect_uri.startswith("http:")
        return redirect_uri in uris or (is_native and redirect_to_uri_allowed(redirect_uri, uris))

    # ---------------------------------------------------------------- codes

    def _create_authorization_code(self, request: Any, code: dict[str, str], expires: Any = None) -> Any:
        """Store the digest of a code, and record who approved it. Raises AccessDeniedError if the operator has lost the
        access to the admin, or got a new password, since the request began."""
        resources = getattr(request, "resource", None) or []
        self._validate_resource_uris(request, resources)
        with transaction.atomic():
            # Either deletes the codes that are stored. The lock keeps it from missing this one.
            user = User.objects.select_for_update(no_key=True).get(pk=request.user.pk)
            if not is_operator(user) or user.password != request.user.password:
                raise errors.AccessDeniedError(request=request)
            after = {"scopes": " ".join(request.scopes), "redirect_uri": request.redirect_uri}
            record_acts(request.headers[APPROVER], "approve", Change(request.client, {}, after))
            return Grant.objects.create(
                application=request.client,
                user=request.user,
                code=checksum(code["code"]),
                expires=clock.now() + timedelta(seconds=CODE_SECONDS),
                redirect_uri=request.redirect_uri,
                scope=" ".join(request.scopes),
                code_challenge=request.code_challenge,
                code_challenge_method=request.code_challenge_method,
                resource=resources,
            )

    def validate_code(
        self, client_id: str, code: str, client: OAuthClient, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Return whether the code is valid. A second use revokes all tokens of the first (RFC 6749, 4.1.2).

        Raises TooManyCalls. The code is still valid then.
        """
        if super().validate_code(client_id, code, client, request):
            is_valid = is_operator(request.user)
            if is_valid:
                _spend_if_public(request, client, SEND_COST)
            return is_valid
        family = family_of(code)
        if RefreshToken.objects.filter(token_family=family, application=client).exists():
            _end_family(request, family, client)
        return False

    def invalidate_authorization_code(self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Use the code up. If another request did so meanwhile, end the tokens of both. Raises InvalidGrantError."""
        try:
            super().invalidate_authorization_code(client_id, code, request, *args, **kwargs)
        except errors.InvalidGrantError:
            _end_family(request, family_of(code), request.client)
            raise

    # --------------------------------------------------------------- tokens

    def validate_refresh_token(
        self, refresh_token: str, client: OAuthClient, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Return whether the refresh token is the client's, unused, and of an operator who is still one. A second use
        revokes all tokens of its family, whichever client sends it (RFC 9700, 4.14.2).

        Raises TooManyCalls. The token is still valid then.
        """
        with transaction.atomic():
            # The toolkit revokes the family too, but records nothing. The lock keeps other requests from using the
            # token between the two looks at it.
            _end_if_used(request, refresh_token)
            is_valid = super().validate_refresh_token(refresh_token, client, request) and is_operator(request.user)
        if is_valid:
            _spend_if_public(request, client, SEND_COST)
        return bool(is_valid)

    def save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """Store the digests of tokens. Raises InvalidGrantError if another request used the refresh token meanwhile."""
        instance: Any = getattr(request, "refresh_token_instance", None)
        try:
            with transaction.atomic():
                if instance is not None and not _lock_unused(instance.pk):
                    raise Reused
                self._save_bearer_token(token, request)
                record(request, ISSUE)
        except Reused:
            _end_family(request, instance.token_family, request.client)
            raise errors.InvalidGrantError(request=request) from None

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Revoke a token of the client with its family, if it has such a token, and record that. Raises TooManyCalls.

        Any other token is answered alike (RFC 7009, 2.2), and so counts as a wrong one here.
        """
        mine = {"token_checksum": checksum(token), "application": request.client}
        if not any(table.objects.filter(**mine).exists() for table in (AccessToken, RefreshToken)):
            count_wrong(request.headers[ORIGIN], request.headers[APPROVER].peer)
            return
        _spend_if_public(request, request.client, LEAST_COST)
        with transaction.atomic():
            super().revoke_token(token, token_type_hint, request, *args, **kwargs)
            # The toolkit leaves the successors of a used refresh token. Its client may never have got them.
            if (row := RefreshToken.objects.filter(**mine).first()) is not None:
                RefreshToken.revoke_family(row.token_family)
            record(request, REVOKE)

    def _create_refresh_token(self, request: Any, code: str, access_token: Any, previous: Any) -> Any:
        """Store a refresh token in the family of its predecessor, or of its authorization code."""
        row = RefreshToken(
            user=request.user,
            application=request.client,
            access_token=access_token,
            token_family=previous.token_family if previous else family_of(request.code),
            resource=request.resource,
        )
        self._set_token_value(row, code)
        row.save()
        return row

    def _validate_resource_uris(self, request: Any, resources: list[str]) -> None:
        """Check that a token is asked for this server or its agents (RFC 8707, 2). Raises CustomOAuth2Error."""
        for resource in resources:
            try:
                agent_of(resource, request.headers.get(ADDRESS, ""))
            except ValueError as error:
                raise errors.CustomOAuth2Error(
                    error="invalid_target", description=str(error), request=request
                ) from None


def _find_client(client_id: str) -> OAuthClient | None:
    if not 0 < len(client_id) <= LONGEST or "\0" in client_id:
        return None
    return OAuthClient.objects.select_related("principal__tenant").filter(client_id=client_id).first()


def _spend_if_public(request: Any, client: OAuthClient, cost: int) -> None:
    """Take the cost of a valid code or token out of the buckets of a public client's principal. Raises TooManyCalls.

    A confidential client has paid when its secret was checked. The id of a public client is no secret, so wrong
    requests with it must cost the principal nothing.
    """
    if client.client_type == PUBLIC:
        spend(client, cost, request.headers[APPROVER].peer)


def _lock_unused(pk: int) -> bool:
    """Lock a refresh token. Return false if it was used or revoked meanwhile."""
    return RefreshToken.objects.select_for_update().filter(pk=pk, revoked=None).first() is not None


def _end_if_used(request: Any, refresh_token: str) -> None:
    """Lock a refresh token. If it was used or revoked, end its family."""
    rows = RefreshToken.objects.select_for_update(of=("self",)).select_related("application__principal__tenant")
    row = rows.filter(token_checksum=checksum(refresh_token)).order_by(F("revoked").desc(nulls_first=True)).first()
    if row is not None and row.revoked is not None:
        _end_family(request, row.token_family, row.application)


def _end_family(request: Any, family: UUID, client: OAuthClient) -> None:
    """Revoke all tokens of a family, which are of the client, and record that if any of them was valid until now."""
    with transaction.atomic():
        valid = RefreshToken.objects.select_for_update().filter(token_family=family, revoked=None).order_by("pk")
        has_valid = bool(list(valid))
        RefreshToken.revoke_family(family)
        if has_valid:
            record(request, REUSE, client)
