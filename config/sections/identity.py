"""Callers."""

from config.environment import names

A2A_SCHEMES = tuple(names("A2A_SCHEMES", "bearer,key"))
"""How callers may say who they are, separated by commas: `bearer`, an API key as a bearer token; `key`, an API key in
`X-API-Key`. Cards and the challenge of a 401 show these, and nothing else is looked at (docs/identity.md)."""
