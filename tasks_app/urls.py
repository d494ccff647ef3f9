"""The URLs of the HTTP doors. Django tries patterns in this order, so the busiest paths come first."""

import re
from collections.abc import Iterable

from django.conf import settings
from django.urls import URLPattern, include, path, re_path

from a2a.choice import Endpoint
from a2a.languages import ALL
from tasks_app.callers.paths import RESERVED
from tasks_app.oauth.metadata import resource
from tasks_app.transports.call_streams import follow_call
from tasks_app.transports.cards import card, catalogue, extended_card, key_set, schema
from tasks_app.transports.descriptions import openapi, openrpc
from tasks_app.transports.enveloped import enveloped
from tasks_app.transports.files import download
from tasks_app.transports.front import front
from tasks_app.transports.links import create, follow
from tasks_app.transports.metrics import metrics
from tasks_app.transports.pages import health, healthz, readyz
from tasks_app.transports.rest import rest
from tasks_app.transports.slack import events
from tasks_app.transports.tickets import ticket

WELL_KNOWN = ("agent-card.json", "agent.json")
EXTENDED = "agent/authenticatedExtendedCard"
"""The path of the extended card of 0.2, beside that of the card (docs/protocol.md#extended-card)."""
ROOTS = ("", "agents/<slug:agent>/")
"""The prefixes of each endpoint: the root of the server, and the address of an agent."""
AGENT = r"^(?:agents/(?P<agent>[-a-zA-Z0-9_]+)/)?"
_FREE = rf"(?!(?:{'|'.join(map(re.escape, sorted(RESERVED)))})/)"
"""The condition that a path begins with none of our own words."""
TENANT = rf"(?:{_FREE}(?P<tenant>[^/]+)/)?"
TICKET = rf"^(?:agents/[^/]+/|{_FREE}[^/]+/)?ws/ticket/?\Z"


def endpoint_urls(endpoints: Iterable[Endpoint]) -> list[URLPattern]:
    """Return the patterns of endpoints, which their paths and routes alone decide."""
    return [
        pattern
        for endpoint in endpoints
        for pattern in (_route_urls(endpoint) if endpoint.routes else _envelope_urls(endpoint))
    ]


def _envelope_urls(endpoint: Endpoint) -> list[URLPattern]:
    view = enveloped(endpoint.name)
    places = [root + place for root in ROOTS for place in endpoint.paths]
    calls = [path(spelling, view) for place in places for spelling in _spellings(place)]
    beside = "|".join(re.escape(f"{place}/") if place else "" for place in endpoint.paths)
    if not endpoint.has_openrpc:
        return calls
    return [*calls, re_path(rf"{AGENT}(?:{beside})openrpc\.json\Z", openrpc(endpoint.name))]


def _spellings(place: str) -> list[str]:
    """Return a path without a slash at its end, and with one."""
    bare = place.removesuffix("/")
    return [bare, f"{bare}/"] if bare else [""]


def _route_urls(endpoint: Endpoint) -> list[URLPattern]:
    """Return the patterns of routes. All that stands behind a prefix is theirs; at the root, only their own words are,
    and a tenant may stand before these (docs/protocol.md#tenants)."""
    view, words = rest(endpoint.name), "|".join(sorted({_word(segment) for segment in endpoint.segments}))
    at_root = AGENT + TENANT + rf"(?P<path>(?:{words})(?:/(?s:.*))?)\Z"
    return [
        re_path(AGENT + re.escape(place) + r"/(?P<path>(?s:.*))\Z" if place else at_root, view)
        for place in endpoint.paths
    ]


def _word(segment: str) -> str:
    """Return the pattern of a first segment. Any verb may follow a colon, so that an unknown one is refused as REST."""
    noun, colon, _ = segment.partition(":")
    return re.escape(noun) + (":[^/]*" if colon else "")


urlpatterns = [
    path("", front),
    *endpoint_urls(ALL.endpoints.values()),
    *(path(f"{root}.well-known/{file}", card, {"file": file}) for root in ROOTS for file in WELL_KNOWN),
    *(path(f"{root}card", card, {"file": "card"}) for root in ROOTS),
    *(path(f"{root}{EXTENDED}", extended_card) for root in ROOTS),
    re_path(TICKET, ticket),
    re_path(rf"{AGENT}openapi\.json\Z", openapi),
    *([path("", include("tasks_app.oauth.urls"))] if settings.A2A_OAUTH else []),
    re_path(r"^\.well-known/oauth-protected-resource(?P<path>(?:/[^\s]*)?)\Z", resource),
    path("agents/", catalogue),
    path(".well-known/jwks.json", key_set),
    path("schemas/adr-002/<str:file>", schema),
    path("schemas/zones/<str:file>", schema, {"system": "zones"}),
    path("files/<str:file>/<str:name>", download),
    *(path(f"{root}links", create) for root in ROOTS),
    *(path(f"{root}links/<str:task>", follow) for root in ROOTS),
    *(path(f"{root}stream/<path:call_id>", follow_call) for root in ROOTS),
    path("slack/events", events),
    path("healthz", healthz),
    path("health", health),
    path("readyz", readyz),
    path("metrics", metrics),
]
