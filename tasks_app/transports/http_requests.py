"""Requests of HTTP as Django has them, with headers that a caller may have made up."""

from collections.abc import Mapping
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.utils.functional import cached_property


class Request(ASGIRequest):
    """A request whose text is in UTF-8, whatever its Content-Type says.

    Django also reads the parameters of the media type, before any view could answer. It raises an error for a parameter
    in an unknown charset, and for a charset beside a query with too many members.
    """

    def _set_content_type_params(self, meta: Mapping[str, Any]) -> None:
        self.content_type, self.content_params = media_of(meta), {}

    @cached_property
    def accepted_types(self) -> list[Any]:
        """The media types of Accept; empty if the parameters of one of them cannot be read."""
        try:
            return list(super().accepted_types)
        except (TypeError, ValueError):  # of an unknown charset, or of parts of which only some have a number
            return []


def media_of(meta: Mapping[str, Any]) -> str:
    """Return the media type of a body without its parameters, from headers that are named as in WSGI."""
    kind: str = meta.get("CONTENT_TYPE", "")
    return kind.partition(";")[0].strip().lower()
