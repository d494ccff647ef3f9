"""The type of the hybrid card, which clients of 0.3 and of 1.0 can read (docs/protocol.md#card-of-both)."""

from typing import Annotated

from msgspec import UNSET, UnsetType, field

from a2a.dialects.json.security import MEMBERS
from a2a.dialects.schemas import answers_0_x, answers_1_0
from a2a.dialects.schemas.values import OAuthFlows
from a2a.params import rule


class HybridScheme(answers_1_0.SecurityScheme, kw_only=True):
    """A way to authenticate, in both forms."""

    kind: Annotated[str, rule(enum=list(MEMBERS))] = field(name="type")
    scheme: str | UnsetType = UNSET
    bearer_format: str | UnsetType = UNSET
    open_id_connect_url: str | UnsetType = UNSET
    flows: OAuthFlows | UnsetType = UNSET
    oauth2_metadata_url: str | UnsetType = UNSET
    place: Annotated[str, rule(const="header")] | UnsetType = field(name="in", default=UNSET)
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


Scheme = Annotated[HybridScheme, answers_1_0.ONE_KIND]


class HybridCard(answers_1_0.CardMembers, kw_only=True):
    """The card of 1.0 with the members by which clients of 0.3 call the agent."""

    url: str
    preferred_transport: str
    additional_interfaces: list[answers_0_x.AgentTransport]
    protocol_version: str
    supports_authenticated_extended_card: bool
    security: answers_0_x.Requirements | UnsetType = UNSET
    security_schemes: dict[str, Scheme] | UnsetType = UNSET
