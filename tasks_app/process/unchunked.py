"""Answers to requests of HTTP/1.0, which has no chunks (RFC 9112, 6.1)."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Unchunked(RequestResponseCycle):
    """A request of HTTP/1.0. The body of an answer without a length ends with the connection.

    uvicorn would send such an answer in chunks. It closes each connection of HTTP/1.0 after the answer in any case.
    """

    has_length = False
    """Whether the answer has announced the length of its body."""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.has_length = any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
            if not self.has_length:
                self.chunked_encoding = False
        elif not self.has_length:
            # uvicorn compares each piece with the bytes that are still expected.
            self.expected_content_length = len(message.get("body", b""))
        await super().send(message)
