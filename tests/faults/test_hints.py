"""Hints between processes: the wire format, what is ignored, and what is bounded."""

import asyncio
from collections.abc import Iterator
from signal import SIGCONT, SIGSTOP
from typing import Any

import msgspec
import pytest
import redis as redis_client
from channels.layers import channel_layers
from channels_redis.pubsub import RedisSingleShardConnection

from config.databases import redis_options
from tasks_app.hints import Hints, Reached, redis_group
from tasks_app.hints import hints as ours
from tasks_app.hints.redis_group import GROUP, WAITING, Broadcast, encode_message, message, news_of
from tests.conftest import PATIENCE, until
from tests.faults.nodes import Redis
from tests.support import servers

pytestmark = pytest.mark.fault
NEWS = [Reached("t1", 3, "working"), Reached("t2", 9, None, True)]


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with servers.redis() as url:
        yield url


@pytest.fixture
def layer(redis: str, settings: Any) -> Iterator[Any]:
    yield from layer_at(redis, settings)


@pytest.fixture
def own_redis(settings: Any) -> Iterator[Redis]:
    """Give a server of the test's own, on which the layer is, to be frozen."""
    server = Redis()
    server.start()
    for _ in layer_at(server.url, settings):
        yield server
    server.kill()


def layer_at(redis: str, settings: Any) -> Iterator[Any]:
    settings.REDIS_URL = redis
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [redis_options(redis)], "prefix": "taskdesk-test"},
        }
    }
    channel_layers.backends.clear()
    yield channel_layers["default"]
    channel_layers.backends.clear()


async def test_our_messages_are_those_that_the_layer_itself_publishes(redis: str, layer: Any) -> None:
    sent = message("somebody", NEWS)
    channel, data = encode_message(layer, sent)
    with redis_client.Redis.from_url(redis) as client, client.pubsub() as listening:
        listening.subscribe(channel)
        await layer.group_send(GROUP, sent)
        heard = await asyncio.to_thread(first_message, listening)
    assert heard == data
    await layer.flush()


def first_message(listening: Any) -> bytes:
    for _ in range(1_000):
        found = listening.get_message(timeout=0.1)
        if found and found["type"] == "message":
            return bytes(found["data"])
    raise AssertionError("nothing was encode_message")


def test_news_survive_the_journey_and_our_own_are_dropped() -> None:
    sent = message("somebody", NEWS)
    assert news_of(sent, "me") == NEWS
    assert news_of(sent, "somebody") == []


@pytest.mark.parametrize("sent", [{}, {"from": "x"}, {"from": "x", "news": b"\xc1"}, {"from": "x", "news": b"\x01"}])
def test_a_message_that_is_no_hint_is_refused(sent: dict[str, Any]) -> None:
    with pytest.raises((msgspec.MsgspecError, LookupError)):
        news_of(sent, "me")


def test_news_that_cannot_leave_are_bounded() -> None:
    broadcast = Broadcast()
    for _ in range(3):
        broadcast.put([Reached(f"t{place}", 1, None) for place in range(WAITING)])
    assert len(broadcast.waiting) == WAITING


def test_only_what_was_committed_here_is_passed_on() -> None:
    hints, heard, relayed = Hints(), [], []
    hints.listen(heard.append)
    hints.relay(relayed.append)
    hints.publish(NEWS[:1])
    hints.notify(NEWS[1:])
    assert (heard, relayed) == ([NEWS[:1], NEWS[1:]], [NEWS[:1]])


def test_quick_news_are_told_without_an_empty_message(redis: str, layer: Any) -> None:
    broadcast = Broadcast()
    channel, empty = encode_message(layer, message(broadcast.me, []))
    with redis_client.Redis.from_url(redis) as client, client.pubsub() as listening:
        listening.subscribe(channel)
        broadcast.start()
        try:
            for seq in range(5):
                broadcast.put([Reached("t", seq, "working")])
            broadcast.put([Reached("last", 1, "completed")])
            heard = [first_message(listening)]
            while b"last" not in heard[-1]:
                heard.append(first_message(listening))
        finally:
            broadcast.stop()  # Publishes the waiting hints.
        while (late := listening.get_message(timeout=0.2)) is not None:
            heard.append(late["data"])
    assert empty not in heard


def test_two_processes_hear_of_each_other_whatever_else_is_said_in_their_group(redis: str, layer: Any) -> None:
    heard: list[Reached] = []
    here, there = Broadcast(), Broadcast()
    ours.listen(heard.extend)
    here.start()
    try:
        with redis_client.Redis.from_url(redis) as client:
            channel, _ = encode_message(layer, message("x", []))
            until(lambda: client.pubsub_numsub(channel)[0][1], "the group is joined")
            for nonsense in (b"", b"\xc1", layer.serialize({"type": GROUP}), layer.serialize({"from": 1, "news": 2})):
                client.publish(channel, nonsense)
            client.publish(*encode_message(layer, message(there.me, NEWS)))
        until(lambda: heard == NEWS, "the news are heard")
    finally:
        here.stop()
        ours.forget(heard.extend)


def test_a_redis_that_accepts_and_is_silent_is_reported_and_left(
    own_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_group, "JOIN_SECONDS", 0.5)
    broadcast = Broadcast()
    own_redis.tell(SIGSTOP)
    broadcast.start()
    try:
        until(lambda: broadcast.deaf, "the silence is reported")
        own_redis.tell(SIGCONT)
        monkeypatch.setattr(redis_group, "JOIN_SECONDS", PATIENCE)
        until(lambda: not broadcast.deaf, "the group is joined")
    finally:
        broadcast.stop()


def test_hints_are_heard_again_after_a_timeout_of_the_network(
    redis: str, layer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task of the layer that receives ends with it, and is not started again."""
    monkeypatch.setattr(redis_group, "SILENCE", 0.5)
    broken, heard = list[object](), list[Reached]()

    def time_out(*arguments: object) -> None:
        broken.extend(arguments)
        raise TimeoutError

    broadcast = Broadcast()
    ours.listen(heard.extend)
    broadcast.start()
    try:
        with redis_client.Redis.from_url(redis) as client:
            channel, data = encode_message(layer, message("another process", NEWS))
            with monkeypatch.context() as network:
                network.setattr(RedisSingleShardConnection, "_receive_message", time_out)
                until(lambda: client.publish(channel, data) and broken, "the network fails")
            until(lambda: client.publish(channel, data) and heard[:2] == NEWS, "the news are heard")
    finally:
        broadcast.stop()
        ours.forget(heard.extend)
    assert not broadcast.deaf
