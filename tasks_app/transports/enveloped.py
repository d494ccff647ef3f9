"""The HTTP door for languages with an envelope: one endpoint takes every call by POST."""

from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from a2a import languages
from tasks_app.transports.http import Refusal, body_of, call_of, refuse_call
from tasks_app.transports.http_replies import response_to
from tasks_app.transports.receiving import receive

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def enveloped(name: str) -> View:
    """Return the view of an endpoint.

    Django's check of CSRF does not apply: a session cookie counts only with its CSRF token (callers/sessions.py).
    """

    async def view(request: HttpRequest, agent: str | None = None) -> HttpResponseBase:
        endpoint = languages.ALL.endpoints[name]
        try:
            body = body_of(request, endpoint)
        except Refusal as refusal:
            return await refuse_call(request, refusal, endpoint)
        call = call_of(request, endpoint, agent)
        return await response_to(request, call, await receive(call, body))

    view.csrf_exempt = True  # type: ignore[attr-defined]  # as Django's decorator does it, without a call around each
    view.enveloped = name  # type: ignore[attr-defined]  # for floods.py
    view.endpoint = name  # type: ignore[attr-defined]  # for the handler, which refuses before the view is called
    return view


jsonrpc = enveloped("rpc")
