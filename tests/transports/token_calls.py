"""Calls with tokens, at three doors."""

import json
import time
from typing import Any

import jwt
from asgiref.sync import async_to_sync
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from tasks_app.callers.access import Caller
from tasks_app.callers.schemes import evidence_in
from tasks_app.oauth.resources import document_of
from tasks_app.transports import handshake, keys
from tasks_app.transports.http import Refusal, add_headers
from tests.transports.calls import call

FOREIGN = rsa.generate_private_key(65537, 2048)
NO_TOKEN = f'Bearer realm="taskdesk", resource_metadata="{document_of("/")}"'
INVALID = f'{NO_TOKEN}, error="invalid_token"'


def posted(authorization: str, path: str = "/jsonrpc", **headers: str) -> Any:
    headers |= {"A2A-Version": "1.0"} | ({"Authorization": authorization} if authorization else {})
    return Client().post(path, call("ListTasks", {}, id=1), "application/json", headers=headers)


def got(authorization: str, path: str = "/tasks") -> Any:
    headers = {"A2A-Version": "1.0"} | ({"Authorization": authorization} if authorization else {})
    return Client().get(path, headers=headers)


def shaken(authorization: str, protocols: tuple[str, ...] = ()) -> Any:
    """Return the answer to a refused handshake; None if it opens a socket."""
    headers = [(b"host", b"testserver"), (b"authorization", authorization.encode("latin-1"))]
    scope = {"type": "websocket", "path": "/ws", "query_string": b"", "headers": headers if authorization else []}
    request = handshake.request_of(scope)

    async def open_socket() -> Any:
        try:
            (await handshake.open_socket(request, protocols)).holding.release()
        except Refusal as refusal:
            response = handshake.encode_refusal(request, refusal)
            add_headers(request, response, refusal.error)
            return response
        return None

    return async_to_sync(open_socket)()


def recognised(token: str) -> Caller:
    evidence = evidence_in({"HTTP_AUTHORIZATION": f"Bearer {token}"})
    return async_to_sync(keys.authenticate)(evidence, str).caller


def jwk_of(key: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return found | {"kid": "rsa-1"}


def now(offset: float = 0) -> int:
    return int(time.time() + offset)
