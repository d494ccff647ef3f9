"""Callers."""

from config.environment import choice, members, names

A2A_SCHEMES = tuple(names("A2A_SCHEMES", "bearer,key"))
"""How callers may say who they are, separated by commas: `bearer`, an API key as a bearer token; `key`, an API key in
`X-API-Key`; `oidc`, a token of an issuer; `mtls`, a certificate of the client. Cards and the challenge of a 401 show
these, and nothing else is looked at (docs/identity.md)."""
A2A_ISSUERS = members("A2A_ISSUERS", '{"https://id.example.com": {"audience": "taskdesk"}}')
"""The issuers of tokens of the scheme `oidc`, as JSON: the options of each by its `iss` (docs/identity.md#tokens)."""
A2A_CLIENT_CERT_HEADER = choice(
    "A2A_CLIENT_CERT_HEADER", ("Client-Cert", "X-Forwarded-Client-Cert", "X-SSL-Client-Cert")
)
"""The header in which proxies of `A2A_TRUSTED_PROXIES` pass the certificate of a client on. From any other peer it is
ignored. The proxies must remove it from the requests that they get."""
