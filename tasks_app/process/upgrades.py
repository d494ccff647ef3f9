"""Requests that offer to switch to another protocol, such as HTTP/2. The server switches to WebSocket only, and answers
every other request as if it offered nothing (RFC 9110, 7.8).

The parser cannot ignore an offer: it stops behind the head, skips the body, and takes what follows for the other
protocol. So the head is parsed again without the offer, and the body after it.
"""

from collections.abc import Iterable
from typing import Any

import httptools

Fields = Iterable[tuple[bytes, bytes]]
"""Header fields of a request, with their names in lower case."""


def make_parser(protocol: Any) -> httptools.HttpRequestParser:
    """Return a new parser, set up as by uvicorn. One that was offered to switch and to close parses nothing more."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def head_without_offer(parser: httptools.HttpRequestParser, url: bytes, fields: Fields) -> bytes:
    """Return the head that a parser has stopped behind, without its Upgrade fields.

    All other fields stay. Those of the body's length must, because the body has to end where a proxy thinks it ends.
    """
    first = b"%b %b HTTP/%b\r\n" % (parser.get_method(), url, parser.get_http_version().encode())
    return first + b"".join([b"%b: %b\r\n" % field for field in fields if field[0] != b"upgrade"]) + b"\r\n"


def is_request_of_socket(parser: httptools.HttpRequestParser) -> bool:
    """Return whether a request may begin a WebSocket, by its method and version (RFC 6455, 4.1)."""
    return parser.get_method() == b"GET" and parser.get_http_version() == "1.1"


def announces_body(fields: Fields) -> bool:
    """Return whether a request has a body. A Content-Length of 0 announces none; some devices send it."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t") != b"")
        for name, value in fields
    )
