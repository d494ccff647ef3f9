"""Hints between processes, over one group of the channels_redis pubsub layer that every web and worker process joins.

There are two threads. One publishes with a Redis client of its own, in the layer's format: the layer can publish from
an event loop only, and handing each message to a loop costs thirty times as much. The other runs the event loop on
which the layer receives.
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

from a2a.states import ACTIVE
from tasks_app.counters import broker_messages
from tasks_app.hints.local import Reached, hints

log = logging.getLogger(__name__)
GROUP = "hints"
NEWS = 200
"""The most (task, sequence) pairs in one message."""
WAITING = 10_000
"""Pairs that may wait to be published. More push out the oldest, which readers find by their poll."""
PATIENCE = 2.0
"""Seconds that Redis may take to answer, and the pause after it did not."""
PAUSE = 0.02
"""Seconds that a hint of state "working" may wait to be sent together with the next one."""
PROBE_SECONDS = 5.0
"""Seconds without a hint after which an empty message is published, so that /readyz knows whether Redis answers."""
JOIN_SECONDS = 5.0
"""Seconds that joining the group may take. A Redis that accepts a connection and is silent would hold it for ever."""
STOP_SECONDS = 0.1
"""Seconds between two attempts to stop the threads."""
SILENCE = 3 * PROBE_SECONDS
"""Seconds without any message, even our own, after which the group is joined again."""

_news = msgspec.msgpack.Decoder(list[Reached])


def message(sender: str, news: list[Reached]) -> dict[str, Any]:
    """Return the layer's message for these hints."""
    return {"type": GROUP, "from": sender, "news": msgspec.msgpack.encode(news)}


def news_of(received: dict[str, Any], me: str) -> list[Reached]:
    """Return the hints in a message, or nothing for a message from this process. Raises for any other message."""
    return [] if received["from"] == me else _news.decode(received["news"])


def encode_message(layer: Any, message: dict[str, Any]) -> tuple[str, bytes]:
    """Return the Redis channel and the bytes that `layer.group_send(GROUP, message)` would publish."""
    prefix = settings.CHANNEL_LAYERS["default"]["CONFIG"]["prefix"]
    return f"{prefix}__group__{GROUP}", layer.serialize(message)


class Broadcast:
    """The membership of this process in the group: it publishes its own hints and receives those of others."""

    def __init__(self) -> None:
        self.me = secrets.token_hex(6)
        self.waiting: deque[Reached] = deque(maxlen=WAITING)
        self.signal = threading.Event()
        self.urgent = threading.Event()
        self.stopping = threading.Event()
        self.trouble = ""
        """Why hints cannot be published at the moment; empty if they can."""
        self.deaf = ""
        """Why hints of other processes cannot be received at the moment; empty if they can."""
        self.threads: list[threading.Thread] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.threads:
            return
        self.stopping.clear()
        self.loop = asyncio.new_event_loop()
        # Made here and not on the thread, so that stop() can cancel it even before the thread runs.
        self.listening = self.loop.create_task(self._listen())
        self.threads = [
            threading.Thread(target=self._publish_all, name="hints-out", daemon=True),
            threading.Thread(target=self._receive_all, args=(self.loop, self.listening), name="hints-in", daemon=True),
        ]
        for thread in self.threads:
            thread.start()
        hints.relay(self.put)

    def stop(self) -> None:
        """Publish all waiting hints, and leave the group."""
        if not self.threads or self.loop is None:
            return
        hints.forget_relay(self.put)
        self.stopping.set()
        self.urgent.set()
        self.signal.set()
        deadline = time.monotonic() + 2 * PATIENCE
        while any(thread.is_alive() for thread in self.threads) and time.monotonic() < deadline:
            # Cancel repeatedly, because the code that connects to Redis may swallow a cancellation.
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._leave)
            for thread in self.threads:
                thread.join(STOP_SECONDS)
        self.threads = []

    # -------------------------------------------------------------------- out

    def put(self, news: list[Reached]) -> None:
        """Queue hints for publishing. Called on the thread that committed, which must not wait for Redis."""
        self.waiting.extend(news)
        if any(item.message or item.state not in ACTIVE for item in news):
            self.urgent.set()
        self.signal.set()

    def _publish_all(self) -> None:
        layer = get_channel_layer()
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, socket_keepalive=True
        )
        while not self.stopping.is_set() or self.waiting:
            has_news = self.signal.wait(PROBE_SECONDS)
            self.signal.clear()
            # "Working" is often followed soon by the result. A short pause makes one message of the two.
            self.urgent.wait(PAUSE if self.waiting else 0)
            self.urgent.clear()
            if has_news and not self.waiting:
                continue  # The last round has published these hints.
            try:
                if not has_news:
                    self._publish(client, layer, [])
                while self.waiting:
                    news = [self.waiting.popleft() for _ in range(min(NEWS, len(self.waiting)))]
                    self._publish(client, layer, news)
            except Exception as error:  # noqa: BLE001  # any error may be gone at the next attempt
                broker_messages.add(("redis", "failed"))
                self._report_failure(error)
                self.waiting.clear()
                self.stopping.wait(PATIENCE)
            else:
                self._report_success()
        client.close()

    def _publish(self, client: "redis.Redis", layer: Any, news: list[Reached]) -> None:
        client.publish(*encode_message(layer, message(self.me, news)))
        broker_messages.add(("redis", "published"))

    def _report_failure(self, error: Exception) -> None:
        if not self.trouble:
            log.warning("Redis does not answer; hints for other processes are lost, and their streams lag: %s", error)
        self.trouble = f"hints: Redis does not answer, streams of other processes lag {settings.A2A_POLL_SECONDS:g} s"

    def _report_success(self) -> None:
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
            loop.run_until_complete(_flush(get_channel_layer()))
            loop.close()

    def _leave(self) -> None:
        if self.listening is not None:
            self.listening.cancel()

    async def _listen(self) -> None:
        """Receive hints, and join the group again after a silence.

        The layer reconnects by itself after a break, but not if its first subscription failed or if its connection
        went silent. In both cases not even the messages of this process come back: that is the silence.
        """
        layer = get_channel_layer()
        channel = await self._join(layer)
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    received = await layer.receive(channel)
                news = news_of(received, self.me)
            except TimeoutError:
                channel = await self._join(layer)
                continue
            except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as error:
                log.warning("a message in the group of hints is not a hint: %s", error)
                broker_messages.add(("redis", "failed"))
                continue
            if news:
                broker_messages.add(("redis", "received"))
                hints.notify(news)

    async def _join(self, layer: Any) -> str:
        while True:
            try:
                async with asyncio.timeout(JOIN_SECONDS):
                    await _flush(layer)  # Otherwise the channel of the last attempt would collect messages for ever.
                    channel: str = await layer.new_channel()
                    await layer.group_add(GROUP, channel)
            except Exception as error:  # noqa: BLE001  # any error may be gone at the next attempt
                log.warning("the group of hints cannot be joined, trying again: %s", error or "Redis does not answer")
                self.deaf = "hints: those of other processes do not arrive, streams lag"
                await asyncio.sleep(PATIENCE)
            else:
                self.deaf = ""
                return channel


async def _flush(layer: Any) -> None:
    """Close the connection of the layer on this loop.

    If its receiving task has ended with a TimeoutError of the network, the layer keeps that task, and each flush raises
    the error again.
    """
    try:
        await layer.flush()
    except TimeoutError:
        for shard in layer._shards:  # there is no public way
            shard._receive_task = None
        await layer.flush()


broadcast = Broadcast()
"""The membership of this process."""
