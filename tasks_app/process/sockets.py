"""WebSocket connections on uvicorn with limits: the size of a message, and the progress of readers."""

import asyncio
from typing import Any

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from tasks_app.process.progress import Progress

LAST_SECONDS = 0.5
"""Seconds between the order to stop and the end of a socket. Its streams and waiting calls end in this time."""


class Socket(WebSocketsSansIOProtocol):
    """A connection with limits. uvicorn alone has no deadline for readers, and stops in the middle of a stream."""

    progress: Progress
    """The progress of its reader."""
    timer: asyncio.TimerHandle

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.progress = Progress(transport)
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.progress.pause(self.loop.time())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.progress.resume()

    def shutdown(self) -> None:
        """Close the socket once its streams and waiting calls have had time to send their end."""
        self.timer.cancel()
        self.timer = self.loop.call_later(LAST_SECONDS, self._shut_down)

    def _shut_down(self) -> None:
        super().shutdown()

    def _set_timer(self) -> None:
        """Set the timer that looks at the reader. It may be late by half a deadline."""
        self.timer = self.loop.call_later(settings.A2A_WRITE_SECONDS / 2, self._check_progress)

    def _check_progress(self) -> None:
        if self.progress.is_too_slow(self.loop.time()):
            self.transport.abort()
            return
        self._set_timer()
