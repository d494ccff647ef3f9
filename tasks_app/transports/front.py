"""The page at `/` for people: the agents of this server, and how to call them. Programs get the JSON-RPC door there.

In development the page has a box to try an agent, for browsers on this machine. The key is typed into it, or comes
behind the `#` of the address that `run` prints. Browsers never send that part, and no page contains a key.
"""

from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.csrf import csrf_exempt

from a2a import languages
from a2a.agents import registry
from tasks_app import __version__
from tasks_app.callers.peers import peer_of
from tasks_app.cards.addresses import address_of
from tasks_app.transports.enveloped import jsonrpc

PAGES = 64
"""Pages in the cache. Callers can make up host names that a pattern in ALLOWED_HOSTS matches."""


@csrf_exempt
async def front(request: HttpRequest) -> HttpResponseBase:
    """Return the page to a browser, and pass all other requests to the door for JSON-RPC."""
    if request.method not in {"GET", "HEAD"} or not settings.A2A_FRONT_PAGE or not _wants_page(request):
        return await jsonrpc(request)
    address = address_of(request)
    if not address:
        sentence = "This server has no such name: its operator lists names in ALLOWED_HOSTS.\n"
        return HttpResponse(sentence, status=400, content_type="text/plain; charset=utf-8")
    body = page(address, may_try(request), settings.A2A_DEFAULT_AGENT)
    # Under the same address programs get JSON, and other machines get the page without the box.
    return HttpResponse(body, headers={"Vary": "Accept, Host", "Cache-Control": "private, no-cache"})


front.enveloped = "rpc"  # type: ignore[attr-defined]  # for floods.py: all that is posted here is a call


def may_try(request: HttpRequest) -> bool:
    """Return whether the page has the box, which needs a development server and a browser on this machine."""
    try:
        return bool(settings.DEVELOPMENT and ip_address(peer_of(request) or "").is_loopback)
    except ValueError:
        return False


@lru_cache(maxsize=PAGES)
def page(address: str, box: bool, default: str) -> str:
    """Return the page, cached for each address. Agents do not change while the process runs."""
    agents = [_describe(agent, address) for agent in sorted(registry, key=lambda agent: agent.name) if agent.listed]
    return render_to_string(
        "desk/front.html",
        {
            "address": address,
            "version": __version__,
            "versions": [dialect.version for dialect in languages.ALL.dialects],
            "agents": agents,
            "default": default if any(agent["name"] == default for agent in agents) else "",
            "box": box,
            "documentation": settings.A2A_DOCUMENTATION_URL,
            "provider": settings.A2A_PROVIDER,
        },
    )


def _describe(agent: Any, address: str) -> dict[str, Any]:
    """Return an agent as on its public card, with its addresses."""
    skills = [skill for skill in agent.skills if skill.listed]
    examples = [example for skill in skills for example in skill.examples]
    return {
        "name": agent.name,
        "description": agent.description,
        "skills": skills,
        "say": examples[0] if examples else "Hello",
        "base": f"{address}/agents/{agent.name}",
        "card": f"{address}/agents/{agent.name}/.well-known/agent-card.json",
        "takes": ", ".join(agent.input_modes),
        "gives": ", ".join(agent.output_modes),
    }


def _wants_page(request: HttpRequest) -> bool:
    """Return whether Accept names HTML, with at least the weight of JSON."""
    if "text/html" not in request.META.get("HTTP_ACCEPT", "").lower():
        return False
    return request.get_preferred_type(["text/html", "application/json"]) == "text/html"
