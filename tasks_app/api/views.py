"""The base of every view of the operators' API: its credentials, its media type and its errors."""

from typing import Any

import orjson
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from tasks_app.api.authentication import BySession, ByToken
from tasks_app.api.problems import NotJson, answer_problem


class StrictJSONParser(BaseParser):
    """Reads JSON in UTF-8 (RFC 8259, 8.1) without a Content-Encoding. It refuses JSON that is nested too deeply, or has
    an unpaired surrogate."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the value of the body. Raises NotJson, and UnsupportedMediaType for a body in another form."""
        _, parameters = parse_header_parameters(media_type or "")
        charset = parameters.get("charset", "utf-8")
        coding = parser_context["request"].headers.get("Content-Encoding", "")
        if charset.lower() not in {"utf-8", "utf8"}:
            raise UnsupportedMediaType("", f"The charset {charset!r} is not read here: send JSON in UTF-8.")
        if coding.lower() not in {"", "identity"}:
            raise UnsupportedMediaType("", f"The Content-Encoding {coding!r} is not read here: send the body as it is.")
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise NotJson(f"The body is not JSON in UTF-8: {error}.") from None


class View(APIView):
    """A view of JSON for operators, whose answers are stored nowhere."""

    authentication_classes = (ByToken, BySession)
    renderer_classes = (JSONRenderer,)
    parser_classes = (StrictJSONParser,)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Check the caller, and then whether the Content-Type of a change can be read."""
        super().initial(request, *args, **kwargs)
        try:
            parse_header_parameters("" if request.method in SAFE_METHODS else request.content_type or "")
        except (TypeError, ValueError):
            raise UnsupportedMediaType("", "The parameters of the Content-Type cannot be read.") from None

    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        """Return the form of the answer. It is JSON, also if the parameters in Accept cannot be read."""
        try:
            return super().perform_content_negotiation(request, force=force)
        except TypeError:
            return super().perform_content_negotiation(request, force=True)

    def get_exception_handler(self) -> Any:
        return answer_problem

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response
