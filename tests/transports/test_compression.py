"""Compressing an answer: what becomes of its body, and of its place in the account."""

import asyncio
import gzip

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from tasks_app.limits.accounts import Account
from tasks_app.transports.compression import LEAST, compress, takes_gzip

REQUESTS = RequestFactory()
TEXT = b"a text that says the same over and over again. "


@pytest.mark.parametrize("size", [LEAST, 200_000], ids=["on the loop", "in a thread"])
def test_the_place_of_an_answer_in_the_account_shrinks_with_it(size: int) -> None:
    account, body = Account(), (TEXT * size)[:size]
    held, response = account.hold(1, "bodies", size), HttpResponse(body)
    asyncio.run(compress(REQUESTS.get("/", headers={"Accept-Encoding": "gzip"}), response, held))
    assert gzip.decompress(response.content) == body
    assert account.amounts["bodies", 1] == account.totals["bodies"] == len(response.content) < size / 10
    held.release()
    assert account.totals["bodies"] == 0


def test_an_answer_that_stays_as_it_is_keeps_its_place() -> None:
    account, body = Account(), TEXT * 1_000
    held, response = account.hold(1, "bodies", len(body)), HttpResponse(body, headers={"Vary": "Authorization"})
    asyncio.run(compress(REQUESTS.get("/"), response, held))
    assert (response.content, response["Vary"]) == (body, "Authorization, Accept-Encoding")
    assert account.amounts["bodies", 1] == len(body)


def test_small_answers_and_streams_are_not_touched() -> None:
    request = REQUESTS.get("/", headers={"Accept-Encoding": "gzip"})
    for response in (HttpResponse(b"x" * (LEAST - 1)), StreamingHttpResponse([b"x" * LEAST])):
        assert asyncio.run(compress(request, response)) is response
        assert {"Content-Encoding", "Vary"}.isdisjoint(response.headers)


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("br, gzip;q=0.1", True),
        (" gzip ; q=1 ", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("*", False),
        ("gzipped", False),
    ],
)
def test_gzip_is_used_where_it_is_named(accepted: str, taken: bool) -> None:
    assert takes_gzip(REQUESTS.get("/", headers={"Accept-Encoding": accepted})) is taken
