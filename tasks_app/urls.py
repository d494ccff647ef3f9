"""The URLs of the HTTP doors. Django tries patterns in this order, so the busiest path comes first."""

import re

from django.urls import path, re_path

from a2a.languages import WORDS
from tasks_app.callers.paths import RESERVED
from tasks_app.transports.cards import card, catalogue, extended_card, key_set
from tasks_app.transports.enveloped import jsonrpc
from tasks_app.transports.files import download
from tasks_app.transports.front import front
from tasks_app.transports.pages import healthz, readyz
from tasks_app.transports.rest import rest

WELL_KNOWN = ("agent-card.json", "agent.json")
EXTENDED = "agent/authenticatedExtendedCard"
"""The path of the extended card of 0.2, beside that of the card (docs/protocol.md#extended-card)."""
AGENT = r"^(?:agents/(?P<agent>[-a-zA-Z0-9_]+)/)?"
TENANT = rf"(?:(?!(?:{'|'.join(map(re.escape, sorted(RESERVED)))})/)(?P<tenant>[^/]+)/)?"
CALL = rf"(?P<path>(?:message:[^/]*|{'|'.join(map(re.escape, sorted(WORDS)))})(?:/(?s:.*))?)\Z"

urlpatterns = [
    path("jsonrpc", jsonrpc),
    *(path(other, jsonrpc) for other in ("jsonrpc/", "rpc", "rpc/")),
    path("", front),
    *(path(f"agents/<slug:agent>{tail}", jsonrpc) for tail in ("/jsonrpc", "/jsonrpc/", "", "/", "/rpc", "/rpc/")),
    *(path(f".well-known/{file}", card, {"file": file}) for file in WELL_KNOWN),
    *(path(f"agents/<slug:agent>/.well-known/{file}", card, {"file": file}) for file in WELL_KNOWN),
    path(EXTENDED, extended_card),
    path(f"agents/<slug:agent>/{EXTENDED}", extended_card),
    path("agents/", catalogue),
    path(".well-known/jwks.json", key_set),
    path("files/<str:file>/<str:name>", download),
    re_path(AGENT + r"v1/(?P<path>(?s:.*))\Z", rest("rest-0.x")),
    re_path(AGENT + TENANT + CALL, rest("rest")),
    path("healthz", healthz),
    path("readyz", readyz),
]
