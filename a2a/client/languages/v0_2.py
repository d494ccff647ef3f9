"""A2A 0.2 from the client's side: 0.3 without the version header, and with the extended card as a plain page."""

from msgspec.structs import replace

from a2a.client.languages import v0_3
from a2a.dialects.v0_2 import DIALECT
from a2a.requests import GetExtendedCard

CARD = replace(v0_3.CARD, page="agent/authenticatedExtendedCard")
LANGUAGE = replace(
    v0_3.LANGUAGE,
    name=DIALECT.name,
    version=DIALECT.version,
    # Its agents are older than the header.
    headers={},
    operations={**v0_3.LANGUAGE.operations, GetExtendedCard: CARD},
)
