"""The door for cards, the catalogue, public keys and JSON Schemas, which need no API key, and for the extended card of
0.2."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.http import http_date, parse_http_date_safe
from django.views.decorators.csrf import csrf_exempt

from a2a import languages
from a2a.answers import CardAnswer
from a2a.card_choice import CardFile, card_encoder, card_languages
from a2a.dialects import adr, v0_2
from a2a.dialects.schemas import adr as adr_schemas
from a2a.dialects.schemas import zone
from a2a.errors import InvalidRequest, UnknownAgent
from a2a.language import VERSION_HEADER
from a2a.requests import GetExtendedCard
from a2a.types import Json
from tasks_app.cards import public as cards
from tasks_app.cards.addresses import address_of, own, varying
from tasks_app.cards.public import Page, changed_at, page_of
from tasks_app.transports.http import version_of
from tasks_app.transports.private_pages import Body, PrivatePage

MAX_AGE = 60
"""Seconds for which a client may cache a card."""
PUBLIC = {"X-Content-Type-Options": "nosniff"}
"""Headers of all public answers."""
UNKNOWN_NAME = "this server has no such name; its operator sets A2A_PUBLIC_URL, or lists names in ALLOWED_HOSTS"


def _problem(status: int, sentence: str) -> HttpResponse:
    return _refused(status, {"error": sentence})


def _problem_of_adr(status: int, sentence: str) -> HttpResponse:
    kind = UnknownAgent if status == 404 else InvalidRequest
    return _refused(status, adr.encode_bare_error(kind(detail=sentence), status, ""))


def _refused(status: int, body: Json) -> HttpResponse:
    headers = PUBLIC | {"Cache-Control": "no-store"}
    return HttpResponse(orjson.dumps(body), status=status, content_type="application/json", headers=headers)


async def card(request: HttpRequest, file: CardFile, agent: str | None = None) -> HttpResponse:
    """Return the card of an agent, encoded as path, version and language ask (docs/protocol.md#cards)."""
    problem = _problem_of_adr if file == "card" else _problem
    if (refusal := _refusal(request, problem)) is not None:
        return refusal
    address = address_of(request)
    if not address:
        return problem(400, UNKNOWN_NAME)
    name = agent or settings.A2A_DEFAULT_AGENT
    language = request.GET.get("language", "")
    if (form := card_encoder(file, version_of(request), language)) is None:
        names = ", ".join(card_languages())
        return _problem(400, f"there is no card in the language {language[:64]!r}; ask for one of {names}")
    encode, versions = form
    page = cards.public_card(name, address, encode, whole=agent is None)
    if page is None:
        return problem(404, f"there is no agent {name[:64]}")
    response = _respond(request, page, VERSION_HEADER, varying(), public=address in own())
    if versions:
        response[VERSION_HEADER] = ", ".join(versions)
    if file == "card":
        response[adr.LANGUAGE.agent_header] = name
    return response


@csrf_exempt
async def catalogue(request: HttpRequest) -> HttpResponse:
    """Return the agents of this server. No call is possible here, because the path names no agent."""
    if request.method == "POST":
        return _problem(404, "name an agent: /agents/{name}/jsonrpc; GET /agents/ lists them")
    if (refusal := _refusal(request)) is not None:
        return refusal
    address = address_of(request)
    if not address:
        return _problem(400, UNKNOWN_NAME)
    return _respond(request, cards.catalogue(address), varying(), public=address in own())


async def key_set(request: HttpRequest) -> HttpResponse:
    """Return the public keys that verify cards."""
    return _refusal(request) or _respond(request, cards.key_set())


async def schema(request: HttpRequest, file: str, system: Literal["adr-002", "zones"] = "adr-002") -> HttpResponse:
    """Return a JSON Schema of ADR-002 or of zones."""
    schemas = _schemas(system)
    page = schemas.get(file.removesuffix(".json")) if file.endswith(".json") else None
    if page is None:
        return _problem(404, f"there is no such schema; there are {', '.join(f'{name}.json' for name in schemas)}")
    return _refusal(request) or _respond(request, page)


@cache
def _schemas(system: str) -> dict[str, Page]:
    documents = zone.SCHEMAS if system == "zones" else adr_schemas.SCHEMAS
    return {name: page_of(document) for name, document in documents.items()}


def _refusal(request: HttpRequest, problem: Callable[[int, str], HttpResponse] = _problem) -> HttpResponse | None:
    if request.method in {"GET", "HEAD"}:
        return None
    response = problem(405, "use GET")
    response["Allow"] = "GET, HEAD"
    return response


def _respond(request: HttpRequest, page: Page, *vary: str, public: bool = True) -> HttpResponse:
    headers = PUBLIC | {
        "ETag": page.etag,
        "Last-Modified": http_date(changed_at().timestamp()),
        "Cache-Control": f"{'public' if public else 'private'}, max-age={MAX_AGE}",
    }
    if varies := ", ".join(filter(None, vary)):
        headers["Vary"] = varies
    if _is_current(request, page):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(page.body, content_type="application/json", headers=headers)


def _is_current(request: HttpRequest, page: Page) -> bool:
    """Return whether the client has the page already. A date counts only without a tag (RFC 9110, 13.1.3)."""
    tags = request.META.get("HTTP_IF_NONE_MATCH")
    if tags is not None:
        tag_of_page = page.etag.removeprefix("W/")
        return tags.strip() == "*" or tag_of_page in {tag.strip().removeprefix("W/") for tag in tags.split(",")}
    since = request.META.get("HTTP_IF_MODIFIED_SINCE")
    seconds = parse_http_date_safe(since) if since else None
    return seconds is not None and seconds >= changed_at().timestamp()


# ------------------------------------------------------------ extended, 0.2


def _encode(answer: Any) -> Body:
    if not isinstance(answer, CardAnswer):
        raise TypeError("an extended card is a card")
    return Body(orjson.dumps(v0_2.encode_card(answer.card)))


EXTENDED = PrivatePage(
    language=v0_2.DIALECT,
    method="agent/authenticatedExtendedCard",
    request=lambda call: GetExtendedCard(address=call.address()),
    encode=_encode,
)


@csrf_exempt
async def extended_card(request: HttpRequest, agent: str | None = None) -> HttpResponse:
    """Return the extended card of 0.2, by GET with a key (docs/protocol.md#extended-card)."""
    return await EXTENDED.serve(request, languages.ALL.endpoints["rpc"], agent)
