"""Caching of cards: tags, dates, and what an answer varies by."""

import json

import pytest

from tests.support.doors import Door
from tests.transports.cards.pages import CARD, CATALOGUE, PUBLIC, got


@pytest.mark.parametrize("path", PUBLIC)
def test_public_pages_are_cached_and_validated_by_tag_or_date(door: Door, path: str) -> None:
    status, told, body = got(door, path)
    assert status == 200
    assert json.loads(body)
    assert told["cache-control"] == "public, max-age=60"
    tag, date = told["etag"], told["last-modified"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*", f'W/"x",{tag}'):
        status, again, nothing = got(door, path, **{"If-None-Match": known})
        assert (status, again["etag"], nothing) == (304, tag, b"")
    assert got(door, path, **{"If-Modified-Since": date})[0] == 304
    assert got(door, path, **{"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"})[0] == 304


@pytest.mark.parametrize(
    "headers",
    [
        {"If-None-Match": '"other"'},
        {"If-None-Match": ""},
        {"If-None-Match": "," * 5_000},
        {"If-None-Match": '"other"', "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
        {"If-Modified-Since": "Fri, 31 Feb 2100 00:00:00 GMT"},
        {"If-Modified-Since": "9" * 5_000},
    ],
)
def test_a_page_that_the_client_lacks_is_sent_whole(door: Door, headers: dict[str, str]) -> None:
    status, _, body = got(door, CARD, **headers)
    assert (status, json.loads(body)["name"]) == (200, "echo")


def test_each_shape_has_a_tag_of_its_own_and_caches_know_what_it_varies_by(door: Door) -> None:
    versions = {"1.0", "0.3", "0.2", ""}
    answers = [got(door, CARD, **({"A2A-Version": version} if version else {})) for version in versions]
    assert len({told["etag"] for _, told, _ in answers}) == len(versions)
    assert {told["vary"] for _, told, _ in answers} == {"A2A-Version"}
    assert got(door, CARD + "?A2A-Version=0.3")[1]["etag"] == got(door, CARD, **{"A2A-Version": "0.3.0"})[1]["etag"]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_head_is_answered_and_nothing_can_be_done_but_read(door: Door, path: str) -> None:
    assert got(door, path, "HEAD")[0] == 200
    for method in ("PUT", "DELETE", "PATCH", "POST", "OPTIONS"):
        status, told, body = got(door, path, method)
        if method == "POST" and path == CATALOGUE:
            assert status == 404
        else:
            assert (status, told["allow"]) == (405, "GET, HEAD")
        assert set(json.loads(body)) == {"error"}
