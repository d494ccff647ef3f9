"""Every wire language that is spoken here, and at which endpoint: the one list from which all else follows.

A version of A2A is a value in DIALECTS. Another language is a row of an endpoint, or an endpoint of its own.
"""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from a2a.choice import Endpoint, Row, by_version, by_version_of_path
from a2a.dialects import rest_0_x, v0_2, v0_3, v1_0
from a2a.envelopes import bare, jsonrpc
from a2a.errors import Error, InvalidParams
from a2a.language import VERSION_HEADER, Dialect, Language, Push
from a2a.types import Json

DIALECTS: tuple[Dialect, ...] = (v1_0.DIALECT, v0_3.DIALECT, v0_2.DIALECT)
"""The newest first: without a header the first that has the method is meant. Names of 1.0 and 0.x never overlap."""


def _encode_neutral(error: Error, code: int) -> Json:
    """Return the error object before a language is chosen: code and message only, which all versions share."""
    details = [error.facts["detail"]] if "detail" in error.facts else []
    if "reference" in error.facts:
        details.append(f"reference {error.facts['reference']}")
    if isinstance(error, InvalidParams):
        details += [f"{field} {description}" for field, description in error.violations]
    message = f"{error.sentence}: {'; '.join(details)}" if details else error.sentence
    return {"code": code, "message": message}


NEUTRAL = replace(v1_0.DIALECT, name="neutral", encode_error=_encode_neutral)
"""The words of JSON-RPC for errors of calls whose language is not known."""


def _speaking(dialects: Sequence[Dialect], main: Dialect) -> tuple[Dialect, ...]:
    """Return the versions that have methods of a dialect, the newest first."""
    return tuple(dialect for dialect in dialects if dialect.methods.keys() & main.methods.keys())


class Languages:
    """The endpoints with their languages, and what follows from them."""

    def __init__(
        self,
        dialects: tuple[Dialect, ...] = DIALECTS,
        *,
        rows: tuple[Row, ...] = (),
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        self.dialects = dialects
        """The versions of A2A, the newest first."""
        self.card_versions = tuple(dialect.version for dialect in dialects if dialect.on_cards)
        """Versions that cards list (docs/protocol.md#cards)."""
        own_rows = (*rows, Row(languages=dialects, choose=by_version))
        newer, older = _speaking(dialects, v1_0.DIALECT), _speaking(dialects, v0_3.DIALECT)
        older_row = Row(languages=rest_0_x.DIALECTS, choose=partial(rest_0_x.choose, older))
        own = (
            Endpoint(
                name="rpc", paths=("jsonrpc", "rpc", ""), envelope=jsonrpc.ENVELOPE, neutral=NEUTRAL, rows=own_rows
            ),
            Endpoint(
                name="rest", paths=("",), envelope=bare.ENVELOPE, neutral=v1_0.DIALECT,
                rows=(Row(languages=newer, choose=by_version_of_path),),
            ),
            Endpoint(
                name="rest-0.x", paths=("v1",), envelope=bare.ENVELOPE, neutral=rest_0_x.PROTO, rows=(older_row,)
            ),
        )  # fmt: skip
        self.endpoints = {endpoint.name: endpoint for endpoint in (*own, *endpoints)}
        self.envelopes = {endpoint.envelope.name: endpoint.envelope for endpoint in self.endpoints.values()}
        spoken = [language for endpoint in self.endpoints.values() for language in endpoint.languages]
        # Of two with one name the first is meant.
        self.by_name: dict[str, Language] = {language.name: language for language in reversed(spoken)}
        """The languages by the names that exchanges and webhooks remember."""
        own_pushes = [language for language in spoken if language in dialects or not language.pushes_as]
        self.pushing = {language.name: language for language in own_pushes if language.push}
        """The languages that webhooks remember."""


SPOKEN = Languages()
"""The languages of this server."""


def push_of(name: str) -> tuple[Push, str]:
    """Return how a language delivers, and its A2A version; empty for another language. Raises LookupError."""
    language = SPOKEN.by_name[name]
    if language.push is None:
        raise LookupError(f"{name} has no deliveries")
    return language.push, language.headers().get(VERSION_HEADER, "")
