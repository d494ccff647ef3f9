"""The JSON forms of security schemes: with `type`, as in A2A 0.x and OpenAPI, and with a member for each kind, as in
1.0."""

from a2a.types import Json, OAuthFlow, SecurityScheme

MEMBERS = {
    "http": "httpAuthSecurityScheme",
    "apiKey": "apiKeySecurityScheme",
    "openIdConnect": "openIdConnectSecurityScheme",
    "oauth2": "oauth2SecurityScheme",
    "mutualTLS": "mtlsSecurityScheme",
}
"""The member of 1.0 for each type of 0.x."""


def typed_form(scheme: SecurityScheme) -> Json:
    """Return a scheme whose `type` says its kind (A2A 0.3.0, 5.5.3)."""
    return _kind(scheme) | ({"description": scheme.description} if scheme.description else {})


def member_form(typed: Json) -> Json:
    """Return a scheme whose kind is the name of its only member (A2A 1.0, 4.5.1), from the form with `type`."""
    inner = {name: value for name, value in typed.items() if name not in {"type", "in"}}
    if "in" in typed:
        inner = {"location": typed["in"]} | inner
    return {MEMBERS[typed["type"]]: inner}


def _kind(scheme: SecurityScheme) -> Json:
    if scheme.http_scheme:
        bearer = {"bearerFormat": scheme.bearer_format} if scheme.bearer_format else {}
        return {"type": "http", "scheme": scheme.http_scheme} | bearer
    if scheme.header:
        return {"type": "apiKey", "in": "header", "name": scheme.header}
    if scheme.open_id_connect_url:
        return {"type": "openIdConnect", "openIdConnectUrl": scheme.open_id_connect_url}
    if scheme.flow:
        metadata = {"oauth2MetadataUrl": scheme.metadata_url} if scheme.metadata_url else {}
        return {"type": "oauth2", "flows": _flows(scheme.flow)} | metadata
    return {"type": "mutualTLS"}


def _flows(flow: OAuthFlow) -> Json:
    common: Json = {"tokenUrl": flow.token_url, "scopes": flow.scopes}
    if flow.refresh_url:
        common["refreshUrl"] = flow.refresh_url
    if flow.authorization_url is None:
        return {"clientCredentials": common}
    pkce = {"pkceRequired": True} if flow.pkce_required else {}
    return {"authorizationCode": {"authorizationUrl": flow.authorization_url} | common | pkce}
