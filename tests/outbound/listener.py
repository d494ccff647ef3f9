"""A listener that counts connections."""

import asyncio
import socket


class Listener:
    """A server on both loopbacks that counts connections."""

    def __init__(self) -> None:
        self.hits = 0
        self.port = 0

    async def __aenter__(self) -> "Listener":
        self.four = await asyncio.start_server(self.hit, "127.0.0.1", 0)
        self.port = self.four.sockets[0].getsockname()[1]
        self.six = await asyncio.start_server(self.hit, "::1", self.port) if socket.has_ipv6 else None
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        for server in (self.four, self.six):
            if server:
                server.close()

    async def hit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        writer.close()


PUBLIC = "93.184.215.14"
