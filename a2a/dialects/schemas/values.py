"""Types that the answers of all dialects share: closed objects, values with a pattern, and members of cards."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a.params import rule
from a2a.types import Json


class Closed(Struct, rename="camel", forbid_unknown_fields=True):
    """The base of objects that have no members but their own. A member that is UNSET is absent, never null."""


def one_of(*names: str) -> Meta:
    """Return the rule that an object has exactly one of these members."""
    return rule(oneOf=[{"required": [name]} for name in names])


Count = Annotated[int, rule(minimum=0)]
Instant = Annotated[str, rule(format="date-time", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z$")]
Base64 = Annotated[str, rule(contentEncoding="base64", pattern="^[A-Za-z0-9+/]*={0,2}$")]
Texts = Annotated[list[str], rule(minItems=1)]
"""Strings that are absent where there are none."""


class Provider(Closed):
    """The organization that runs an agent."""

    organization: str
    url: str


class Extension(Closed):
    """A protocol extension that an agent supports."""

    uri: str
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET
    params: Json | UnsetType = UNSET


class Signature(Closed):
    """A signature of a card (RFC 7515)."""

    protected: str
    signature: str


class Violation(Closed):
    """A wrong field, and a description of the fault."""

    field: str
    description: str


class Skill(Closed):
    """A capability of an agent, without the keys that it needs."""

    id: str
    name: str
    description: str
    tags: list[str]
    examples: Texts | UnsetType = UNSET
    input_modes: Texts | UnsetType = UNSET
    output_modes: Texts | UnsetType = UNSET


class About(Closed, kw_only=True):
    """The members of a card that are the same in all versions."""

    name: str
    description: str
    version: str
    default_input_modes: list[str]
    default_output_modes: list[str]
    provider: Provider | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    icon_url: str | UnsetType = UNSET
    signatures: Annotated[list[Signature], rule(minItems=1)] | UnsetType = UNSET


class ClientCredentialsFlow(Closed):
    """The flow of OAuth 2.0 by which a program gets a token with its own secret."""

    token_url: str
    scopes: dict[str, str]
    refresh_url: str | UnsetType = UNSET


class AuthorizationCodeFlow(Closed):
    """The flow of OAuth 2.0 by which a program gets a token from its user."""

    authorization_url: str
    token_url: str
    scopes: dict[str, str]
    refresh_url: str | UnsetType = UNSET
    pkce_required: bool | UnsetType = UNSET


class OAuthFlows(Closed):
    """The flows of OAuth 2.0 by which a client gets a token."""

    authorization_code: AuthorizationCodeFlow | UnsetType = UNSET
    client_credentials: ClientCredentialsFlow | UnsetType = UNSET
