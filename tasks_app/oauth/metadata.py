"""The metadata of the authorization server (RFC 8414) and of its protected resources (RFC 9728)."""

from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from a2a.agents import registry
from tasks_app.callers.issuers import issuers
from tasks_app.cards.addresses import address_of, own, varying
from tasks_app.oauth.resources import agent_of
from tasks_app.oauth.scopes import Scopes

MAX_AGE = 60
"""Seconds for which a client may cache the metadata."""
_SECRETS = ["client_secret_basic", "client_secret_post"]


async def server(request: HttpRequest, path: str = "") -> HttpResponse:
    """Return the metadata of the authorization server. `path` is that of its issuer, if it has one (RFC 8414, 3.1)."""
    issuer = address_of(request)
    if path.rstrip("/") not in {"", urlsplit(issuer).path}:
        return _refuse(404, "this server has no such issuer")
    return _answer(request, _describe_server(issuer))


async def resource(request: HttpRequest, path: str = "") -> HttpResponse:
    """Return the metadata of the server as a protected resource, or of an agent by its path (RFC 9728, 3.1).

    The answer is 404 unless a scheme takes tokens of an authorization server: of our own, or of an issuer.
    """
    if not {"oauth", "oidc"} & set(settings.A2A_SCHEMES):
        return _refuse(404, "this server takes no tokens of an authorization server")
    address = address_of(request)
    base = urlsplit(address).path
    identifier = address + path.removeprefix(base).rstrip("/")
    try:
        name = agent_of(identifier, address)
    except ValueError:
        name = ""
    if name is not None and name not in {agent.name for agent in registry}:
        return _refuse(404, "this server has no such resource; a resource is its base address, or that of an agent")
    return _answer(request, _describe_resource(identifier, address))


def _describe_server(issuer: str) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth2/authorize",
        "token_endpoint": f"{issuer}/oauth2/token",
        "revocation_endpoint": f"{issuer}/oauth2/revoke",
        "introspection_endpoint": f"{issuer}/oauth2/introspect",
        "scopes_supported": Scopes().get_available_scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": [*_SECRETS, "none"],
        "revocation_endpoint_auth_methods_supported": [*_SECRETS, "none"],
        "introspection_endpoint_auth_methods_supported": _SECRETS,
        "authorization_response_iss_parameter_supported": True,
    }


def _describe_resource(identifier: str, own_issuer: str) -> dict[str, Any]:
    schemes = settings.A2A_SCHEMES
    return {
        "resource": identifier,
        "authorization_servers": [
            *([own_issuer] if "oauth" in schemes else []),
            *(issuers() if "oidc" in schemes else []),
        ],
        "scopes_supported": Scopes().get_available_scopes(),
        "bearer_methods_supported": ["header"],
    }


def _answer(request: HttpRequest, document: dict[str, Any]) -> HttpResponse:
    if request.method not in {"GET", "HEAD"}:
        response = _refuse(405, "use GET")
        response["Allow"] = "GET, HEAD"
        return response
    address = address_of(request)
    if not address:
        return _refuse(
            400, "this server has no such name; its operator sets A2A_PUBLIC_URL, or lists names in ALLOWED_HOSTS"
        )
    scope = "public" if address in own() else "private"
    headers = {"Cache-Control": f"{scope}, max-age={MAX_AGE}", "X-Content-Type-Options": "nosniff"}
    if vary := varying():
        headers["Vary"] = vary
    return HttpResponse(orjson.dumps(document), content_type="application/json", headers=headers)


def _refuse(status: int, sentence: str) -> HttpResponse:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(
        orjson.dumps({"error": sentence}), status=status, content_type="application/json", headers=headers
    )
