"""The headers of a request that may be refused early are those that Django's request has."""

from io import BytesIO

import pytest

from tasks_app.transports.heads import meta_of
from tasks_app.transports.http_requests import Request

HEADS = {
    "usual": [(b"host", b"testserver"), (b"content-type", b"application/json"), (b"content-length", b"7")],
    "repeated": [(b"x-api-key", b"one"), (b"x-api-key", b"two"), (b"content-type", b"a/b"), (b"content-type", b"c/d")],
    "cookies": [(b"cookie", b"a=1"), (b"cookie", b"b=2; c=3")],
    "underscores": [(b"x_api_key", b"one"), (b"content_type", b"text/plain"), (b"x-forwarded_for", b"192.0.2.1")],
    "any bytes": [(b"authorization", bytes(range(128, 256))), (b"origin", b""), (b"x" * 100, b"1")],
}
OTHERS = {"REMOTE_HOST", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT"}
"""Members that Django's request has of the connection, besides its address."""


@pytest.mark.parametrize("client", [("192.0.2.7", 40_000), None])
@pytest.mark.parametrize("name", HEADS)
def test_the_headers_are_those_of_djangos_request(name: str, client: tuple[str, int] | None) -> None:
    scope = {"method": "POST", "path": "/jsonrpc", "headers": HEADS[name], "client": client}
    usual = Request(scope | {"headers": []}, BytesIO()).META.keys() - {"REMOTE_ADDR"} | OTHERS
    meta = Request(scope, BytesIO()).META
    assert meta_of(scope) == {field: value for field, value in meta.items() if field not in usual}
