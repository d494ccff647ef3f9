"""The admin's static files, each sent as a whole: under ASGI Django would read WhiteNoise's streamed files completely
anyway."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """WhiteNoise with plain responses, since Django warns of synchronous streams under ASGI."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        static_response = static_file.get_response(request.method, request.META)
        content = b""
        if static_response.file is not None:
            with static_response.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(static_response.status))
        del response["content-type"]
        for name, value in static_response.headers:
            response[name] = value
        return response
