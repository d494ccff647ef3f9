"""Calls over HTTP: of every method in every language, of every path, and with any change of them."""

import json
import re
import shlex
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

from hypothesis import strategies as st

from a2a.dialects.schemas import adr
from tests.fuzz.schemas import TASK, TEXTS, Json, Schemas
from tests.support.descriptions import rest_description, rpc_description
from tests.transports.values import VALUES, spoiled

VERSIONS = ("1.0", "0.3", "0.2", None)
"""Values of A2A-Version; None: the call names none."""
PATHS = {
    "rpc": ("/jsonrpc", "/jsonrpc", "/", "/rpc", "/agents/echo/jsonrpc", "/agents/nobody/"),
    "vapora": ("/a2a", "/a2a", "/agents/echo/a2a", "/agents/nobody/a2a"),
    "sparc": ("/sparc", "/sparc", "/agents/echo/sparc", "/agents/nobody/sparc"),
}
"""Paths of the endpoints of JSON-RPC."""
SPOKEN: dict[str, tuple[str | None, ...]] = {"rpc": VERSIONS, "vapora": (None, "0.3"), "sparc": (None, "0.2")}
"""The values of A2A-Version with which calls are understood at each of them."""
ODD_HEADERS = {
    "A2A-Version": ("0.3.0", "7.1", "1.0, 0.3", "\x00", "1" * 300),
    "A2A-Extensions": ("https://x.invalid/e", ",,", "\xff"),
    "Content-Type": ("text/plain", "application/json; charset=latin-1", "", "multipart/form-data; boundary=x", "\xff"),
    "Accept": ("text/event-stream", "*/*;q=0", "\xff"),
    "Accept-Encoding": ("gzip", "br;q=x", "*"),
    "Content-Encoding": ("gzip", "deflate"),
    "Content-Length": ("0", "-1", "7", "9" * 30),
    "Last-Event-ID": ("0", "3", "-1", "9" * 30, "x"),
    "If-None-Match": ("*", 'W/"x"', '"'),
    "Host": ("evil.example", "a b", ""),
    "Cookie": ("sessionid=x; csrftoken=\xff",),
    "Authorization": ("Bearer", "Bearer x", "Basic eA==", "Digest \xff", "Bearer " + "x" * 9_000),
    "X-API-Key": ("x", "\xff"),
    "X-Request-Id": ("a\tb", "x" * 300, "\xff"),
    "traceparent": ("00-" + "0" * 32 + "-" + "0" * 16 + "-00", "x"),
    "Range": ("bytes=5-1", "bytes=-" + "9" * 30, "x"),
    "X-Budget-USD": ("NaN", "-1", "1e400", "0.5", "\xff"),
}
"""Headers that a call may have besides, with values that are rare."""


class Call(NamedTuple):
    """A request over HTTP."""

    verb: str
    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    """The version that the headers name, if they are as they should be."""
    method: str | None = None
    """The method of JSON-RPC, if the call has one and has not been changed."""
    endpoint: str = "rpc"
    """The endpoint that describes the method."""

    def of_task(self, task_id: str) -> "Call":
        """Return the call with the id of a task in its place."""
        body = self.body.replace(TASK.encode(), task_id.encode())
        return self._replace(path=self.path.replace(TASK, task_id).replace(quote(TASK, safe=""), task_id), body=body)

    def curl(self, base: str) -> str:
        """Return the command that makes the call."""
        words = ["curl", "-sS", "-i", "-X", self.verb, f"{base}{self.path}"]
        words += [word for name, value in self.headers for word in ("-H", f"{name}: {value}")]
        if not self.body:
            return shlex.join(words)
        content = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in self.body
        )
        return f"printf '%b' '{content}' | {shlex.join([*words, '--data-binary', '@-'])}"


FOLLOWS = Call(
    "POST",
    "/jsonrpc",
    b'{"jsonrpc": "2.0", "id": 1, "method": "stream.start"}',
    (("Content-Type", "application/json"), ("Accept", "text/event-stream")),
)
"""A call that follows a new shared stream, to which no participant sends anything."""


@cache
def _params(version: str | None, endpoint: str) -> dict[str, st.SearchStrategy[Any]]:
    """Return the strategies of the params of all methods of an endpoint, as calls with this version name them."""
    description = rpc_description(endpoint, version)
    schemas = Schemas(description.document)
    return {name: schemas.values(method["x-params"]) for name, method in description.methods.items()}


@st.composite
def mutated(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the bytes with a few of them changed, left out, doubled or put in."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(data) - 1)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        match draw(st.sampled_from(["change", "drop", "double", "insert", "end", "deep"])):
            case "change":
                data[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
            case "drop":
                del data[start:end]
            case "double":
                data[start:start] = data[start:end]
            case "insert":
                data[start:start] = draw(
                    st.sampled_from([b"\0", b"\xff", b"\\ud800", b"NaN", b"1e999", b'"', b"\xef\xbb\xbf"])
                )
            case "end":
                del data[start:]
            case _:
                data[start:start] = b"[" * draw(st.sampled_from([3, 70, 2_000]))
    return bytes(data)


@st.composite
def bodies(draw: st.DrawFn, value: Any) -> tuple[bytes, bool]:
    """Return the JSON of a value, and whether it is unchanged: half are changed as JSON or as bytes."""
    how = draw(st.sampled_from(["whole", "whole", "spoiled", "mutated"]))
    if how == "spoiled":
        value = draw(spoiled(value))
    content = json.dumps(value).encode()
    return (draw(mutated(content)) if how == "mutated" else content), how == "whole"


@st.composite
def headers(draw: st.DrawFn, version: str | None) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return the headers of a call, and whether they are as they should be."""
    fields = {"Content-Type": "application/json"} | ({"A2A-Version": version} if version else {})
    if draw(st.integers(0, 3)):
        return tuple(fields.items()), True
    name = draw(st.sampled_from(sorted(ODD_HEADERS)))
    return tuple((fields | {name: draw(st.sampled_from(ODD_HEADERS[name]))}).items()), False


@st.composite
def envelopes(draw: st.DrawFn, version: str | None, endpoint: str = "rpc") -> Json:
    """Return a call of JSON-RPC with params by its schema, or a notification."""
    methods = _params(version, endpoint)
    method = draw(st.sampled_from(sorted(methods)))
    call: Json = {"jsonrpc": "2.0", "method": method, "params": draw(methods[method])}
    if draw(st.integers(0, 5)):
        call["id"] = draw(st.integers(-1, 9) | TEXTS | st.none())
    return call


@st.composite
def rpc_calls(draw: st.DrawFn) -> Call:
    """Return a call over JSON-RPC: one, a batch, or any bytes."""
    endpoint = draw(st.sampled_from(["rpc", "rpc", "rpc", "vapora", "sparc"]))
    version = draw(st.sampled_from(SPOKEN[endpoint]))
    path = draw(st.sampled_from(PATHS[endpoint]))
    fields, are_usual = draw(headers(version))
    shape = draw(st.integers(0, 19))
    if shape == 0:
        return Call("POST", path, draw(st.binary(max_size=60)), fields)
    if shape == 1:
        return Call("POST", path, json.dumps(draw(VALUES)).encode(), fields)
    value: Any = draw(envelopes(version, endpoint))
    method = value["method"]
    if shape < 6:
        value = [value, *draw(st.lists(envelopes(version, endpoint), max_size=3))]
    content, is_whole = draw(bodies(value))
    is_usual = is_whole and are_usual and isinstance(value, dict) and "id" in value
    return Call("POST", path, content, fields, version if are_usual else None, method if is_usual else None, endpoint)


@st.composite
def path_calls(draw: st.DrawFn) -> Call:
    """Return a call of a path that OpenAPI describes: of REST, or of this server's own."""
    rows = _paths()
    template, verb = draw(st.sampled_from(sorted(rows)))
    path = re.sub(r"\{\w+\}", lambda _: quote(draw(st.just(TASK) | TEXTS), safe=""), template)
    query, content = "", b""
    if names := rows[template, verb][0]:
        chosen = draw(st.lists(st.sampled_from(names), max_size=3))
        query = "&".join(f"{name}={quote(str(draw(TEXTS | st.integers(-1, 200))), safe='')}" for name in chosen)
    if (body := rows[template, verb][1]) is not None:
        content, _ = draw(bodies(draw(body)))
    elif not draw(st.integers(0, 5)):
        content = draw(st.binary(max_size=30))
    fields, _ = draw(headers(draw(st.sampled_from(VERSIONS))))
    if not draw(st.integers(0, 9)):
        verb = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "X"]))
    prefix = draw(st.sampled_from(["", "", "", "/agents/echo", "/home"]))
    return Call(verb, f"{prefix}{path}?{query}" if query else f"{prefix}{path}", content, fields)


@st.composite
def adr_calls(draw: st.DrawFn) -> Call:
    """Return a call of ADR-002: of an agent by its name, at its address or at the root, or a negotiation."""
    path = draw(st.sampled_from(["/invoke", "/invoke", "/invoke/stream", "/negotiate"]))
    value = draw(_adr_values("negotiate", "NegotiateParams") if path == "/negotiate" else _adr_values("invoke", "Call"))
    if path != "/negotiate" and draw(st.integers(0, 3)):
        value |= {"method": draw(st.sampled_from(["echo", "echo", "asks", "nobody"]))}
    content, _ = draw(bodies(value))
    fields, _ = draw(headers(None))
    rpc_id = draw(st.integers(0, 99).map(str) | st.sampled_from(["", "a b", "x" * 129, "\xff"]))
    prefix = draw(st.sampled_from(["", "", "/agents/echo"]))
    named = dict(fields) if "X-Request-Id" in dict(fields) else dict(fields) | {"X-Request-ID": f"fuzz-{rpc_id}"}
    return Call("POST", f"{prefix}{path}", content, tuple(named.items()))


@cache
def _adr_values(file: str, name: str) -> st.SearchStrategy[Any]:
    """Return the strategy of bodies by a published schema of ADR-002."""
    return Schemas(adr.SCHEMAS[file]).values({"$ref": f"#/$defs/{name}"})


PAGES = (
    *("/agents/echo/health", "/health", "/metrics", "/agents/echo/ws", "/sparc", "/invocations", "/slack/events"),
    *("/stream/x", "/agents/echo/stream/x", "/schemas/zones/errors.json", "/schemas/adr-002/card.json", "/card"),
    *("/admin/", "/admin/login/", "/admin/tasks_app/task/", "/admin/tasks_app/task/x/change/", "/static/x"),
    *("/oauth2/token", "/oauth2/authorize", "/oauth2/introspect", "/oauth2/revoke", "/api/v1/", "/api/v1/keys/"),
    *(
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/nothing",
        "/ws",
        "//",
        "/.",
    ),
)
"""Paths for GET and forms: those of systems, and those that OpenAPI does not describe. Some are there only with their
extras."""
FORMS = (
    b"username=a&password=b",
    b"grant_type=client_credentials&client_id=a&client_secret=b&scope=tasks:read",
    b"grant_type=authorization_code&code=x&redirect_uri=https://x.invalid/&code_verifier=y",
    b"token=x&token_type_hint=refresh_token",
    b"action=cancel&_selected_action=x",
)


@st.composite
def page_calls(draw: st.DrawFn) -> Call:
    """Return a call of a page: a form, a query, or any bytes."""
    content = draw(st.sampled_from(FORMS) | st.binary(max_size=20))
    content = draw(mutated(content)) if not draw(st.integers(0, 3)) else content
    verb = draw(st.sampled_from(["GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"]))
    query = draw(st.sampled_from(["", "?next=//evil.example", "?q=%00", "?p=x&o=1.2", "?id__in=%ff", "?%ff=%00"]))
    kind = draw(st.sampled_from(["application/x-www-form-urlencoded", "application/json", "text/plain"]))
    fields, _ = draw(headers(None))
    body = content if verb in {"POST", "PUT"} else b""
    return Call(
        verb, draw(st.sampled_from(PAGES)) + query, body, tuple((dict(fields) | {"Content-Type": kind}).items())
    )


def _body(schemas: Schemas, schema: Any) -> st.SearchStrategy[Any]:
    """Return the strategy of a body. The schemas of ADR-002 are files of their own."""
    file, _, name = schema.get("$ref", "").partition(".json#/$defs/")
    if name:
        return _adr_values(file.removeprefix("/schemas/adr-002/"), name)
    return schemas.values(schema)


@cache
def _paths() -> dict[tuple[str, str], tuple[list[str], st.SearchStrategy[Any] | None]]:
    """Return the query members and the strategy of the body of every path and verb."""
    document = rest_description().document
    schemas = Schemas(document)
    rows = {}
    for path, operations in document["paths"].items():
        for verb, operation in operations.items():
            if verb not in {"get", "post", "delete", "put"}:
                continue
            names = [each["name"] for each in operation.get("parameters", ()) if each.get("in") == "query"]
            content = operation.get("requestBody", {}).get("content", {})
            body = _body(schemas, content["application/json"]["schema"]) if content else None
            rows[path, verb.upper()] = names, body
    return rows
