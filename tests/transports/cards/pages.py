"""Paths of cards, and how a door is asked for them."""

import asyncio
from typing import Any

from django.http import HttpResponse
from django.test import AsyncRequestFactory
from django.urls import resolve

from tests.support.doors import Door

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
KEY_SET = "/.well-known/jwks.json"
CATALOGUE = "/agents/"
PUBLIC = [CARD, OLD_CARD, "/agents/story" + CARD, CATALOGUE, KEY_SET]
EXTENDED = "/agent/authenticatedExtendedCard"
Got = tuple[int, dict[str, str], bytes]


def got(door: Door, path: str, method: str = "GET", **headers: str) -> Got:
    async def ask() -> Got:
        async with door.ask(method, path, b"", headers) as reply:
            return reply.status, reply.headers, b"".join([chunk async for chunk in reply.chunks])

    return asyncio.run(ask())


def viewed(path: str, headers: dict[str, str]) -> HttpResponse:
    """Return the answer of the path's view. The test client has a Host of its own and middleware before it."""
    bare = {name: value for name, value in headers.items() if name != "host"}
    request = AsyncRequestFactory().get(path, headers=bare)
    request.META["HTTP_HOST"] = headers.get("host", "testserver")
    view, arguments, named = resolve(request.path_info)
    return asyncio.run(view(request, *arguments, **named))  # type: ignore[no-any-return]


def urls(card: Any) -> set[str]:
    """Where JSON-RPC is spoken."""
    return {place["url"] for place in card["supportedInterfaces"] if place["protocolBinding"] == "JSONRPC"}
