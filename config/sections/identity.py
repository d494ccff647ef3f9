"""Callers."""

from django.core.exceptions import ImproperlyConfigured

from config.environment import choice, members, names, text
from config.sections.oauth import A2A_OAUTH

A2A_SCHEMES = tuple(names("A2A_SCHEMES", "bearer,key"))
"""How callers may say who they are, separated by commas: `bearer`, an API key as a bearer token; `key`, an API key in
`X-API-Key`; `oidc`, a token of an issuer; `mtls`, a certificate of the client; `session`, a login to the admin;
`oauth`, an access token of our own OAuth server, on by default with `A2A_OAUTH`. Cards and the challenge of a 401 show
these, and nothing else is looked at (docs/identity.md)."""
if A2A_OAUTH and not text("A2A_SCHEMES"):
    A2A_SCHEMES = ("oauth", *A2A_SCHEMES)
if "oauth" in A2A_SCHEMES and not A2A_OAUTH:
    raise ImproperlyConfigured("A2A_SCHEMES lists oauth, but the OAuth server is off: set A2A_OAUTH=true")
if A2A_OAUTH and "oauth" not in A2A_SCHEMES:
    raise ImproperlyConfigured(
        "A2A_OAUTH is on, but A2A_SCHEMES does not list oauth, so no call could use the tokens of the OAuth server: "
        "add oauth to A2A_SCHEMES, or set A2A_OAUTH=false"
    )
A2A_ISSUERS = members("A2A_ISSUERS", example='{"https://id.example.com": {"audience": "taskdesk"}}')
"""The issuers of tokens of the scheme `oidc`, as JSON: the options of each by its `iss` (docs/identity.md#tokens)."""
A2A_CLIENT_CERT_HEADER = choice(
    "A2A_CLIENT_CERT_HEADER", ("Client-Cert", "X-Forwarded-Client-Cert", "X-SSL-Client-Cert")
)
"""The header in which proxies of `A2A_TRUSTED_PROXIES` pass the certificate of a client on. From any other peer it is
ignored. The proxies must remove it from the requests that they get."""
