"""Brokers over TLS: no password is sent to one whose certificate is not trusted, or is that of another host."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from kombu import Connection
from redis import RedisError

from config.celery import celery_settings
from tasks_app.hints import dispatch
from tasks_app.hints.broker import tls_options
from tasks_app.zones import queue
from tests.support.tls import certificate, tls_front

CLOSED = 9
"""A port at which nothing listens."""


def of_workers(url: str) -> Connection:
    """Return the connection by which processes wake workers."""
    app = Celery(set_as_current=False)
    app.add_defaults(celery_settings)
    return dispatch.connection_of(app)


WAYS = {"workers": of_workers, "zones": queue._connect}


def refusal(connect: Callable[[str], Connection], scheme: str, file: Path, settings: Any) -> str:
    """Return the error of a connection to a broker on this machine with a certificate."""

    async def story() -> str:
        async with tls_front(file, CLOSED) as port:
            settings.CELERY_BROKER_URL = f"{scheme}://user:password@localhost:{port}"
            with connect(settings.CELERY_BROKER_URL) as connection, pytest.raises((OSError, RedisError)) as error:
                await asyncio.to_thread(connection.connect)
        return str(error.value)

    return asyncio.run(story())


@pytest.mark.parametrize("scheme", ["amqps", "rediss"])
@pytest.mark.parametrize("way", WAYS)
def test_a_broker_of_an_unknown_authority_is_refused(way: str, scheme: str, tmp_path: Path, settings: Any) -> None:
    assert "self-signed certificate" in refusal(WAYS[way], scheme, certificate("localhost", tmp_path), settings)


@pytest.mark.parametrize("scheme", ["amqps", "rediss"])
@pytest.mark.parametrize("way", WAYS)
def test_a_broker_with_the_certificate_of_another_host_is_refused(
    way: str, scheme: str, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate("other.internal", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert "Hostname mismatch" in refusal(WAYS[way], scheme, file, settings)


def test_the_address_of_a_broker_may_ask_for_no_certificate() -> None:
    assert not tls_options("rediss://host:6379/0?ssl_cert_reqs=none")
