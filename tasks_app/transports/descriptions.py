"""The door for descriptions by GET: /openrpc.json beside each endpoint with an envelope. They need a key."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from a2a import discovery, languages
from a2a.answers import Description
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


OPENRPC = PrivatePage(language=discovery.LANGUAGE, method="rpc.discover", request=_openrpc, encode=_encode)


def openrpc(name: str) -> View:
    """Return the view of an endpoint's description."""

    async def view(request: HttpRequest, agent: str | None = None) -> HttpResponse:
        return await OPENRPC.serve(request, languages.ALL.endpoints[name], agent)

    view.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it
    return view
