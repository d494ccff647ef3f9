"""The one list of the server's wire languages and endpoints. Doors, cards, exchanges and webhooks read it.

To add a version of A2A, add its dialect to DIALECTS. To add another language, add a row to an endpoint, or an endpoint.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from a2a.choice import Endpoint, Row, by_version, by_version_of_path
from a2a.dialects import discovery, rest_0_x, v0_2, v0_3, v1_0, vapora
from a2a.dialects.acp import language as acp
from a2a.dialects.adr import ENDPOINTS as ADR
from a2a.dialects.sparc import language as sparc
from a2a.dialects.zone import ROW as ZONE
from a2a.envelopes import bare, jsonrpc
from a2a.language import VERSION_HEADER, Dialect, Language, Push
from a2a.requests import SubscribeToTask

DIALECTS: tuple[Dialect, ...] = (v1_0.DIALECT, v0_3.DIALECT, v0_2.DIALECT)
"""The versions of A2A, the newest first. A call without a version is in the first dialect that has its method."""


FEW = 3
"""Reasons of one code that are named together."""
ROWS: tuple[Row, ...] = (acp.ROW, ZONE)
"""The rows of the endpoint of JSON-RPC for languages that are not A2A."""

KIN: tuple[Dialect, ...] = (sparc.DIALECT,)
"""The languages that differ from a version of A2A, and that a call is in by the pin of its key, or by a method that no
version of A2A has. Cards do not list them."""

NEUTRAL = replace(v1_0.DIALECT, name="neutral", encode_error=discovery.encode_error)
"""The language of errors over JSON-RPC before one is chosen."""


def _with_methods_of(main: Dialect, dialects: Sequence[Dialect]) -> tuple[Dialect, ...]:
    """Return the dialects that share methods with the main one, the newest first."""
    return tuple(dialect for dialect in dialects if dialect.methods.keys() & main.methods.keys())


class Languages:
    """The endpoints with their languages, and indexes over both."""

    def __init__(
        self,
        dialects: tuple[Dialect, ...] = DIALECTS,
        *,
        rows: tuple[Row, ...] = ROWS,
        kin: tuple[Dialect, ...] = KIN,
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        self.dialects = dialects
        """The versions of A2A, the newest first."""
        self.card_versions = tuple(dialect.version for dialect in dialects if dialect.on_cards)
        """Versions that cards list (docs/protocol.md#cards)."""
        self.endpoints = {endpoint.name: endpoint for endpoint in (*_a2a_endpoints(dialects, rows, kin), *endpoints)}
        self.envelopes = {endpoint.envelope.name: endpoint.envelope for endpoint in self.endpoints.values()}
        languages = [language for endpoint in self.endpoints.values() for language in endpoint.languages]
        # Several endpoints may have languages of one name. The first one counts, so it must come last here.
        self.by_name: dict[str, Language] = {language.name: language for language in reversed(languages)}
        """The languages by the names that exchanges and webhooks store."""
        enveloped = [
            endpoint for endpoint in self.endpoints.values() if len(endpoint.languages) > 1 and not endpoint.routes
        ]
        names = {language.name: None for endpoint in enveloped for language in endpoint.languages}
        self.pinnable = tuple(name for name in names if name != discovery.LANGUAGE.name)
        """The names that a key can be pinned to: those of languages that share an endpoint. Where verb and path name
        the method, they choose the language too."""
        own_pushes = [language for language in languages if language in dialects or not language.pushes_as]
        self.pushing = {language.name: language for language in own_pushes if language.push}
        """The languages of deliveries, by name."""
        self.subscriptions = _subscriptions(self.endpoints.values())
        """The endpoint and the method that follow a task over REST, by the version of A2A, the newest first."""
        self._languages = tuple(languages)

    def reason(self, code: int, name: str = "", status: int | None = None) -> str:
        """Return the reason of an error code in a language, or else in the first language that has the code.

        It is empty if none has. Of several errors with one code the HTTP status of the answer decides; the reasons that
        are left are joined, if they are few.
        """
        own = [self.by_name[name]] if name in self.by_name else []
        for language in (*own, *self._languages):
            if kinds := [kind for kind, cell in language.column.items() if cell.number == code]:
                exact = [kind for kind in kinds if language.column[kind].status == status]
                reasons = dict.fromkeys(language.reason(kind) for kind in exact or kinds)
                return " or ".join(reasons) if len(reasons) <= FEW else ""
        return ""


def _subscriptions(endpoints: Iterable[Endpoint]) -> dict[str, tuple[Endpoint, str]]:
    subscriptions: dict[str, tuple[Endpoint, str]] = {}
    for endpoint in endpoints:
        for language in endpoint.languages if endpoint.routes else ():
            for name, method in language.methods.items():
                if isinstance(language, Dialect) and method.request is SubscribeToTask:
                    subscriptions.setdefault(language.version, (endpoint, name))
    return subscriptions


def _a2a_endpoints(
    dialects: tuple[Dialect, ...], rows: tuple[Row, ...], kin: tuple[Dialect, ...]
) -> tuple[Endpoint, ...]:
    """Return the endpoints of A2A: JSON-RPC, whose extra rows come before A2A, REST, and REST of 0.x."""
    newer, older = _with_methods_of(v1_0.DIALECT, dialects), _with_methods_of(v0_3.DIALECT, dialects)
    return (
        Endpoint(
            name="rpc",
            paths=("jsonrpc", "rpc", ""),
            envelope=jsonrpc.ENVELOPE,
            neutral=NEUTRAL,
            rows=(discovery.ROW, *rows, Row(languages=(*dialects, *kin), choose=by_version)),
        ),
        Endpoint(
            name="rest",
            paths=("",),
            envelope=bare.ENVELOPE,
            neutral=v1_0.DIALECT,
            rows=(Row(languages=newer, choose=by_version_of_path),),
        ),
        Endpoint(
            name="rest-0.x",
            paths=("v1",),
            envelope=bare.ENVELOPE,
            neutral=rest_0_x.PROTO,
            rows=(Row(languages=rest_0_x.DIALECTS, choose=partial(rest_0_x.choose, older)),),
        ),
    )


VAPORA = Endpoint(
    name="vapora",
    paths=("a2a",),
    envelope=jsonrpc.ENVELOPE,
    neutral=vapora.LANGUAGE,
    rows=(discovery.ROW, Row(languages=(vapora.LANGUAGE,), choose=by_version)),
)
SPARC = Endpoint(
    name="sparc",
    paths=("sparc",),
    envelope=jsonrpc.ENVELOPE,
    neutral=sparc.DIALECT,
    rows=(discovery.ROW, Row(languages=(sparc.DIALECT,), choose=by_version)),
)
ALL = Languages(endpoints=(VAPORA, SPARC, *ADR))
"""The languages of this server."""


def push_of(name: str) -> tuple[Push, str]:
    """Return the deliveries of a language and its A2A version, empty for a language that is not A2A.

    Raises LookupError for an unknown language and for one without deliveries.
    """
    language = ALL.by_name[name]
    if language.push is None:
        raise LookupError(f"{name} has no deliveries")
    return language.push, language.headers().get(VERSION_HEADER, "")
