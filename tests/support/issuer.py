"""An issuer of tokens on loopback, whose keys rotate and whose server may be down."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tasks_app.callers.issuer_keys import source_of

Json = dict[str, Any]
AUDIENCE = "taskdesk"
SUBJECT = "robot-7"
_RSA = rsa.generate_private_key(65537, 2048)


class LocalIssuer(ThreadingHTTPServer):
    """Serves its metadata and its keys, and counts how often they are fetched."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.keys: dict[str, Any] = {"rsa-1": _RSA}
        self.newest = "rsa-1"
        self.fetches = 0
        self.is_down = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def rotate(self, *, forget: bool = False) -> str:
        """Sign with a new key from now on; without the former ones if they are forgotten."""
        if forget:
            self.keys.clear()
        self.newest = f"ec-{len(self.keys)}-{time.monotonic_ns()}"
        self.keys[self.newest] = ec.generate_private_key(ec.SECP256R1())
        return self.newest

    def claims(self, **more: Any) -> Json:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": SUBJECT,
            "iat": now,
            "exp": now + 300,
            "scope": "tasks:read tasks:write",
        } | more
        return {name: value for name, value in claims.items() if value is not ...}

    def token(self, *, header: Json | None = None, key: Any = None, algorithm: str = "", **claims: Any) -> str:
        """Return a token; a claim or a member of its header that is ... is left out."""
        key = key or self.keys[self.newest]
        algorithm = algorithm or ("ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "RS256")
        members = {"kid": self.newest} | (header or {})
        members = {name: value for name, value in members.items() if value is not ...}
        return jwt.encode(self.claims(**claims), key, algorithm, members)

    def key_set(self) -> Json:
        members = []
        for kid, key in self.keys.items():
            kind: Any = jwt.algorithms.ECAlgorithm if kid.startswith("ec") else jwt.algorithms.RSAAlgorithm
            members.append(orjson.loads(kind.to_jwk(key.public_key())) | {"kid": kid, "use": "sig"})
        return {"keys": members}


class _Answer(BaseHTTPRequestHandler):
    server: LocalIssuer

    def do_GET(self) -> None:  # as the base class names it
        documents: Json = {
            "/.well-known/openid-configuration": {"issuer": self.server.url, "jwks_uri": self.server.url + "/keys"},
            "/keys": self.server.key_set(),
        }
        self.server.fetches += self.path == "/keys"
        body = orjson.dumps(documents.get(self.path, {}))
        self.send_response(503 if self.server.is_down else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def local_issuer() -> Iterator[LocalIssuer]:
    source_of.cache_clear()
    with LocalIssuer() as issuer:
        thread = threading.Thread(target=issuer.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield issuer
        finally:
            issuer.shutdown()
            thread.join()
