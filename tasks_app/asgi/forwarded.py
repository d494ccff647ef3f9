"""The scheme of a request for Django's own handler, which reads X-Forwarded-Proto by rules of its own."""

from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from tasks_app.cards.addresses import is_secure

PROTO = "HTTP_X_FORWARDED_PROTO"


class Forwarded(MiddlewareMixin):
    """Middleware that writes the scheme by our rules into X-Forwarded-Proto.

    Django takes the first of several values, which the client may have made up, and takes it from any peer.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Write the header if there is one. All middleware that asks for the scheme stands behind this."""
        if PROTO in request.META:
            request.META[PROTO] = "https" if is_secure(request) else "http"
