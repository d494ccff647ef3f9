"""The door for descriptions by GET: /openrpc.json beside each endpoint with an envelope, and /openapi.json. They need a
key."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from a2a import languages
from a2a.answers import Description
from a2a.dialects import discovery
from a2a.requests import Describe
from tasks_app.transports.call import Call
from tasks_app.transports.enveloped import View
from tasks_app.transports.private_pages import Body, PrivatePage


def _openrpc(call: Call) -> Describe:
    return Describe(endpoint=call.endpoint.name, version=call.version, address=call.address())


def _encode(result: Any) -> Body:
    if not isinstance(result, Description):
        raise TypeError("a description is a Description")
    return Body(result.body, result.etag)


def _openapi(call: Call) -> Describe:
    return Describe(form="openapi", address=call.address())


OPENAPI = PrivatePage(language=discovery.LANGUAGE, method="openapi.json", request=_openapi, encode=_encode)
OPENRPC = PrivatePage(language=discovery.LANGUAGE, method="rpc.discover", request=_openrpc, encode=_encode)


@csrf_exempt
async def openapi(request: HttpRequest, agent: str | None = None) -> HttpResponse:
    """Return the description of all paths of HTTP."""
    return await OPENAPI.serve(request, languages.ALL.endpoints["rest"], agent)


def openrpc(name: str) -> View:
    """Return the view of an endpoint's description."""

    async def view(request: HttpRequest, agent: str | None = None) -> HttpResponse:
        return await OPENRPC.serve(request, languages.ALL.endpoints[name], agent)

    view.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it
    return view
