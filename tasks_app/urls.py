"""The doors. The order matters: the first pattern is the hot one."""

from django.urls import path

from tasks_app.transports.jsonrpc import jsonrpc
from tasks_app.transports.pages import card, healthz, readyz

WELL_KNOWN = ("agent-card.json", "agent.json")

urlpatterns = [
    path("jsonrpc", jsonrpc),
    *(path(other, jsonrpc) for other in ("jsonrpc/", "", "rpc", "rpc/")),
    *(path(f"agents/<slug:agent>{tail}", jsonrpc) for tail in ("/jsonrpc", "/jsonrpc/", "", "/", "/rpc", "/rpc/")),
    *(path(f".well-known/{file}", card, {"file": file}) for file in WELL_KNOWN),
    *(path(f"agents/<slug:agent>/.well-known/{file}", card, {"file": file}) for file in WELL_KNOWN),
    path("healthz", healthz),
    path("readyz", readyz),
]
