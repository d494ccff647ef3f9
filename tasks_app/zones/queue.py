"""The carrier over a broker: calls and answers are messages of a queue, sealed under A2A_ZONE_SECRET.

A message is acknowledged when its answer is sent, so a call whose worker is lost comes to another worker. One whose
answer takes longer is acknowledged before, and delays no other call. A caller that hears nothing sends the call again,
under the same key.
"""

import asyncio
import hashlib
import logging
import threading
import uuid
from base64 import urlsafe_b64encode
from concurrent.futures import Future, wait
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec
from cryptography.fernet import Fernet, InvalidToken
from kombu import Connection, Consumer, Producer
from kombu import Queue as BrokerQueue
from msgspec import Struct

from tasks_app.hints.broker import time_limits, tls_options
from tasks_app.zones.carriers import NoAnswer, call_in_thread
from tasks_app.zones.in_process import answer

log = logging.getLogger(__name__)
CALLS = "taskdesk.zone.calls"
PATIENCE = 10.0
"""Seconds for which a caller waits for the answer, before it sends the call again."""
LOST_AFTER = 15
"""Seconds after which Redis gives a message that was not acknowledged to another worker."""
LOOK = 0.5
"""Seconds between two looks at whether the worker shall stop, and which late answers there are."""
LIFETIME = 120
"""Seconds for which the broker keeps an answer, and a call if it can."""
SOON = 0.25
"""Seconds for which the door waits for an answer, before it takes the next call."""
LONGEST_PAUSE = 5.0
"""Seconds between two attempts to reach a broker that is away, at most."""
SOCKET_SECONDS = 5.0
"""Seconds that the broker may take for one answer."""


class Sealed(Struct, frozen=True):
    """A call with the API key of its sender, or an answer, whose key is empty."""

    body: bytes
    key: str = ""


class Late(Struct, frozen=True):
    """An answer that takes longer than SOON. The account of waiting calls limits how many an owner has."""

    home: str
    """The queue of its caller."""
    work: Future[bytes]


def cipher_of(secret: str) -> Fernet:
    """Return the cipher of messages between the zones."""
    return Fernet(urlsafe_b64encode(hashlib.sha256(b"taskdesk: zones\0" + secret.encode()).digest()))


def _connect(url: str) -> Connection:
    options = time_limits(SOCKET_SECONDS) | {"visibility_timeout": LOST_AFTER}
    tls = tls_options(url) or False
    return Connection(url, connect_timeout=SOCKET_SECONDS, transport_options=options, ssl=tls)


class Queue:
    """Sends calls to the queue, and waits for their answers at a queue of its own."""

    patience = 0.0  # The door takes one call after another, and waits a little for the answer to each.

    def __init__(self, url: str, secret: str, key: str) -> None:
        self.url, self.cipher, self.key = url, cipher_of(secret), key

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        return await call_in_thread(self._ask, body, owner)

    def _ask(self, body: bytes) -> bytes:
        answers: list[bytes] = []
        name = f"taskdesk.zone.answer.{uuid.uuid4().hex}"
        home = BrokerQueue(name, exclusive=True, auto_delete=True, durable=False, expires=LIFETIME)
        sealed = self.cipher.encrypt(msgspec.msgpack.encode(Sealed(body, self.key)))
        try:
            with _connect(self.url) as connection, connection.channel() as channel:
                with Consumer(channel, [home], callbacks=[lambda _, message: answers.append(_body_of(message))]):
                    Producer(channel).publish(
                        sealed,
                        routing_key=CALLS,
                        reply_to=name,
                        declare=[BrokerQueue(CALLS)],
                        content_type="application/octet-stream",
                        content_encoding="binary",
                        expiration=LIFETIME,
                    )
                    ends = monotonic() + PATIENCE
                    while not answers and monotonic() < ends:
                        with suppress(TimeoutError):
                            connection.drain_events(timeout=LOOK)
                with suppress(Exception):
                    home(channel).delete()
        except Exception as error:  # each broker has errors of its own, and an answer that has come is kept
            if not answers:
                raise NoAnswer(f"the broker: {type(error).__name__}") from error
        if not answers:
            raise NoAnswer(f"no worker has answered within {PATIENCE:g} s")
        try:
            return msgspec.msgpack.decode(self.cipher.decrypt(answers[0]), type=Sealed).body
        except (InvalidToken, msgspec.DecodeError):
            raise NoAnswer("the answer was sealed under another A2A_ZONE_SECRET") from None


def _body_of(message: Any) -> bytes:
    message.ack()
    return bytes(message.body)


class QueueDoor:
    """Takes calls from the queue, performs each on a loop, and sends its answer."""

    def __init__(self, url: str, secret: str, loop: asyncio.AbstractEventLoop) -> None:
        self.url, self.cipher, self.loop = url, cipher_of(secret), loop
        self.stopping = threading.Event()
        self.late: list[Late] = []

    def run(self) -> None:
        """Answer calls until the door is stopped. A broker that is away is asked again."""
        pause = LOOK
        while not self.stopping.is_set():
            try:
                with _connect(self.url) as connection, connection.channel() as channel:
                    pause = LOOK
                    self._answer_all(connection, channel)
            except Exception as error:  # noqa: BLE001  # each broker has errors of its own, and none ends the door
                log.warning("the queue of zones: %s; trying again in %g s", type(error).__name__, pause)
                self.stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _answer_all(self, connection: Connection, channel: Any) -> None:
        def take(_: Any, message: Any) -> None:
            self._answer(channel, message)

        with Consumer(channel, [BrokerQueue(CALLS)], callbacks=[take], prefetch_count=1):
            while not self.stopping.is_set():
                with suppress(TimeoutError):
                    connection.drain_events(timeout=LOOK)
                self._send_late(channel)
        # The calls that wait for their tasks end when the process drains.
        wait([one.work for one in self.late])
        self._send_late(channel)

    def _send_late(self, channel: Any) -> None:
        """Send the late answers that there are."""
        for one in [one for one in self.late if one.work.done()]:
            self.late.remove(one)
            self._send(channel, one.home, one.work.result())

    def _answer(self, channel: Any, message: Any) -> None:
        """Answer one message. One that cannot be unsealed is dropped: its sender has another secret.

        One that is not acknowledged comes back at once, before all others, so one without a place for its answer is
        dropped, too.
        """
        body, home = message.body, message.properties.get("reply_to")
        try:
            sealed = body if isinstance(body, str) else bytes(body)
            call = msgspec.msgpack.decode(self.cipher.decrypt(sealed), type=Sealed)
        except (InvalidToken, msgspec.DecodeError):
            log.warning("a message in the queue of zones was sealed under another A2A_ZONE_SECRET, and is dropped")
            message.ack()
            return
        if not home:
            log.warning("a message in the queue of zones names no queue for its answer, and is dropped")
            message.ack()
            return
        work = asyncio.run_coroutine_threadsafe(answer(call.body, call.key, "queue"), self.loop)
        if wait([work], SOON).done:
            self._send(channel, home, work.result())
        else:
            self.late.append(Late(home, work))
        message.ack()

    def _send(self, channel: Any, home: str, body: bytes) -> None:
        Producer(channel).publish(
            self.cipher.encrypt(msgspec.msgpack.encode(Sealed(body))),
            routing_key=home,
            content_type="application/octet-stream",
            content_encoding="binary",
            expiration=LIFETIME,
        )
        if getattr(channel.connection, "driver_type", "") == "redis":
            # Redis knows no end of messages. Without this it would keep for ever what comes after its caller has left.
            with channel.conn_or_acquire() as client:
                client.expire(home, LIFETIME)
