"""The base of every view of the operators' API: its credentials, its media type and its errors."""

from typing import Any

from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from tasks_app.api.authentication import BySession, ByToken
from tasks_app.api.problems import answer_problem


class View(APIView):
    """A view of JSON for operators, whose answers are stored nowhere."""

    authentication_classes = (ByToken, BySession)
    renderer_classes = (JSONRenderer,)
    parser_classes = (JSONParser,)

    def get_exception_handler(self) -> Any:
        return answer_problem

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response
