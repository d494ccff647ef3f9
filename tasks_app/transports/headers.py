"""Security headers of pages: what a page may load, and whether another page may frame it."""

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

FORMS = "form-action 'self'"
POLICY = f"default-src 'self'; base-uri 'none'; {FORMS}; frame-ancestors 'none'; object-src 'none'"
"""The Content-Security-Policy of every page (CSP Level 3)."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def protect(response: HttpResponseBase) -> None:
    """Add the headers to a response with HTML, except those that its view has set.

    A form of the page may lead to another origin if the view names that as `form_target`, because browsers apply
    form-action to redirects after a form as well.
    """
    if str(response.headers.get("Content-Type", "")).startswith("text/html"):
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if target := getattr(response, "form_target", ""):
            response.headers["Content-Security-Policy"] = POLICY.replace(FORMS, f"{FORMS} {target}")


@sync_and_async_middleware
def pages(get_response):  # type: ignore[no-untyped-def]  # Django gives a function of either kind
    """Return the middleware that protects every page of Django's own handler, error pages included."""
    if iscoroutinefunction(get_response):

        async def answer(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            protect(response)
            return response

        return answer

    def answer_now(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = get_response(request)
        protect(response)
        return response

    return answer_now
