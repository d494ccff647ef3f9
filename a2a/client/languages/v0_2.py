"""A2A 0.2 on the client's side: 0.3 without the version header, and with a plain GET of the extended card."""

from msgspec.structs import replace

from a2a.client.languages import v0_3
from a2a.dialects.v0_2 import DIALECT
from a2a.requests import GetExtendedCard

CARD = replace(v0_3.CARD, page="agent/authenticatedExtendedCard")
LANGUAGE = replace(
    v0_3.LANGUAGE,
    name=DIALECT.name,
    version=DIALECT.version,
    # Agents of 0.2 are older than the header.
    headers={},
    operations={**v0_3.LANGUAGE.operations, GetExtendedCard: CARD},
)
