"""Hints between processes: one group of the channels_redis pubsub layer, which every web and worker joins.

Two threads. One publishes from a kept Redis client, in the layer's own format: the layer itself publishes from event
loops only, and bridging to one costs thirty times as much. The other has the loop on which the layer receives.
"""

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections import deque
from typing import Any

import msgspec
import redis
from channels.layers import get_channel_layer
from django.conf import settings

from tasks_app.hints.local import Reached, hints

log = logging.getLogger(__name__)
GROUP = "hints"
NEWS = 200
"""The most (task, sequence) pairs in one message."""
WAITING = 10_000
"""The most that wait to be published; older ones are dropped, and found by the poll."""
PATIENCE = 2.0
"""Seconds for Redis to answer, and between attempts when it does not."""
PAUSE = 0.02
"""Seconds that the news of a task that is worked on now may wait for others."""
LOOK = 5.0
"""Seconds without news after which an empty message is published: readiness should know whether Redis is there."""
AGAIN = 0.1
"""Seconds after which the threads are told again to end."""
SILENCE = 3 * LOOK
"""Seconds without any message, also of our own, after which the group is joined again."""

_news = msgspec.msgpack.Decoder(list[Reached])


def message(sender: str, news: list[Reached]) -> dict[str, Any]:
    """Return hints in the form that the layer carries."""
    return {"type": GROUP, "from": sender, "news": msgspec.msgpack.encode(news)}


def news_of(received: dict[str, Any], me: str) -> list[Reached]:
    """Return the hints of a message, none for a message of this process. Raises for a message of another form."""
    return [] if received["from"] == me else _news.decode(received["news"])


def published(layer: Any, sent: dict[str, Any]) -> tuple[str, bytes]:
    """The Redis channel and the bytes that `layer.group_send(GROUP, sent)` would publish."""
    prefix = settings.CHANNEL_LAYERS["default"]["CONFIG"]["prefix"]
    return f"{prefix}__group__{GROUP}", layer.serialize(sent)


class Broadcast:
    """This process's part in the group."""

    def __init__(self) -> None:
        self.me = secrets.token_hex(6)
        self.waiting: deque[Reached] = deque(maxlen=WAITING)
        self.wanted = threading.Event()
        self.urgent = threading.Event()
        self.stopping = threading.Event()
        self.trouble = ""
        """Why hints do not leave this process, while they do not."""
        self.deaf = ""
        """Why those of others do not come in."""
        self.threads: list[threading.Thread] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.threads:
            return
        self.stopping.clear()
        self.loop = asyncio.new_event_loop()
        # Made here, so that even who stops at once has something to end.
        self.listening = self.loop.create_task(self._listen())
        self.threads = [
            threading.Thread(target=self._publish_all, name="hints-out", daemon=True),
            threading.Thread(target=self._receive_all, args=(self.loop, self.listening), name="hints-in", daemon=True),
        ]
        for thread in self.threads:
            thread.start()
        hints.relay(self.put)

    def stop(self) -> None:
        """Publishes what waits, and leaves the group."""
        if not self.threads or self.loop is None:
            return
        hints.forget_relay(self.put)
        self.stopping.set()
        self.urgent.set()
        self.wanted.set()
        deadline = time.monotonic() + 2 * PATIENCE
        while any(thread.is_alive() for thread in self.threads) and time.monotonic() < deadline:
            # Not once: what connects to Redis swallows being cancelled.
            with contextlib.suppress(RuntimeError):  # its loop has ended
                self.loop.call_soon_threadsafe(self._leave)
            for thread in self.threads:
                thread.join(AGAIN)
        self.threads = []

    # -------------------------------------------------------------------- out

    def put(self, news: list[Reached]) -> None:
        """On the thread that committed: hands over, and never waits for Redis."""
        self.waiting.extend(news)
        if any(item.message or item.state != "working" for item in news):
            self.urgent.set()
        self.wanted.set()

    def _publish_all(self) -> None:
        layer = get_channel_layer()
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, socket_keepalive=True
        )
        while not self.stopping.is_set() or self.waiting:
            told = self.wanted.wait(LOOK)
            self.wanted.clear()
            # A "working" hint is soon followed by the outcome: one message instead of two.
            self.urgent.wait(PAUSE if self.waiting else 0)
            self.urgent.clear()
            if told and not self.waiting:
                continue  # It went with what was told before.
            try:
                if not told:
                    client.publish(*published(layer, message(self.me, [])))
                while self.waiting:
                    news = [self.waiting.popleft() for _ in range(min(NEWS, len(self.waiting)))]
                    client.publish(*published(layer, message(self.me, news)))
            except Exception as error:  # noqa: BLE001  # whatever it is, it may pass
                self._failed(error)
                self.waiting.clear()
                self.stopping.wait(PATIENCE)
            else:
                self._worked()
        client.close()

    def _failed(self, error: Exception) -> None:
        if not self.trouble:
            log.warning("Redis does not answer; hints for other processes are lost, and their streams lag: %s", error)
        self.trouble = f"hints: Redis does not answer, streams of other processes lag {settings.A2A_POLL_SECONDS:g} s"

    def _worked(self) -> None:
        if self.trouble:
            log.warning("Redis answers again: hints reach other processes")
            self.trouble = ""

    # --------------------------------------------------------------------- in

    def _receive_all(self, loop: asyncio.AbstractEventLoop, listening: asyncio.Task[None]) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(listening)
        except asyncio.CancelledError:
            pass
        finally:
            loop.run_until_complete(get_channel_layer().flush())
            loop.close()

    def _leave(self) -> None:
        if self.listening is not None:
            self.listening.cancel()

    async def _listen(self) -> None:
        """The layer finds its way back by itself when Redis was away, but not to its first subscription, nor when a
        connection went silent: then not even what this process says of itself comes back."""
        layer = get_channel_layer()
        channel = await self._join(layer)
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    received = await layer.receive(channel)
                news = news_of(received, self.me)
            except TimeoutError:
                await layer.flush()
                channel = await self._join(layer)
                continue
            except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as error:
                log.warning("a message in the group of hints is none: %s", error)
                continue
            if news:
                hints.heard(news)

    async def _join(self, layer: Any) -> str:
        while True:
            try:
                channel: str = await layer.new_channel()
                await layer.group_add(GROUP, channel)
            except Exception as error:  # noqa: BLE001  # whatever it is, it may pass
                log.warning("the group of hints cannot be joined, trying again: %s", error)
                self.deaf = "hints: those of other processes are not heard, streams lag"
                await layer.flush()  # Or the channel that was left behind would collect messages for ever.
                await asyncio.sleep(PATIENCE)
            else:
                self.deaf = ""
                return channel


broadcast = Broadcast()
"""The one of this process."""
