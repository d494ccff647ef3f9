"""The scheme of a request for Django's own handler, which reads the header of a proxy without looking at its peer."""

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from tasks_app.callers.peers import may_forward


class Forwarded(MiddlewareMixin):
    """Middleware that removes X-Forwarded-Proto from the request of a peer that is none of the named proxies."""

    def process_request(self, request: HttpRequest) -> None:
        """Remove the header if it does not count. It stands before all middleware that asks for the scheme."""
        if not may_forward(request.META):
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)
