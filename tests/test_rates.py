"""Token buckets of a process, and the limits of strangers by their addresses. Time is passed in."""

from typing import Any

import pytest

from a2a.errors import TooManyCalls
from tasks_app.callers import peers
from tasks_app.callers.peers import network_of, origin_in
from tasks_app.limits import strangers
from tasks_app.limits.buckets import TokenBuckets


def test_a_burst_is_admitted_up_to_the_bucket_and_no_further() -> None:
    buckets = TokenBuckets()
    assert [buckets.take("a", 10, 5.0) for _ in range(12)] == [0.0] * 10 + [6.0] * 2
    assert buckets.take("b", 10, 5.0) == 0.0, "each name has a bucket of its own"


@pytest.mark.parametrize("size", [1, 3, 7, 60, 997, 100_000])
def test_a_bucket_of_any_size_admits_exactly_that(size: int) -> None:
    buckets = TokenBuckets()
    assert [buckets.take("a", size, 12_345.678) for _ in range(size + 3)].count(0.0) == size


def test_a_bucket_fills_evenly_and_never_beyond_its_size() -> None:
    buckets = TokenBuckets()
    for _ in range(3):
        buckets.take("a", 3, 5.0)
    assert buckets.wait("a", 3, 10.0) == 15.0
    assert [buckets.take("a", 3, 25.0), buckets.take("a", 3, 25.0)] == [0.0, 20.0]
    assert [buckets.take("a", 3, 3600.0) for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]


def test_a_clock_that_goes_backwards_gives_no_tokens() -> None:
    buckets = TokenBuckets()
    assert buckets.take("a", 1, 100.0) == 0.0
    assert buckets.take("a", 1, 50.0) > 0


def test_a_hundred_thousand_addresses_take_bounded_memory() -> None:
    buckets = TokenBuckets(most=1_000)
    for number in range(100_000):
        buckets.take(f"address {number}", 2, 5.0)
        buckets.take("busy", 2, 5.0)
    assert len(buckets.full_at) == 1_000
    assert buckets.wait("busy", 2, 5.0) > 0, "a bucket in use is never the one to be dropped"


def test_an_address_may_try_so_many_wrong_credentials_in_a_minute(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 3
    for _ in range(3):
        strangers.check_failures("192.0.2.1", 0.0)
        strangers.count_failure("192.0.2.1", 0.0)
    with pytest.raises(TooManyCalls) as refused:
        strangers.check_failures("192.0.2.1", 5.0)
    assert (refused.value.retry_after, refused.value.facts["most"]) == (15, "3")
    strangers.check_failures("192.0.2.2", 5.0)
    strangers.check_failures("192.0.2.1", 20.0)


def test_an_address_may_make_so_many_calls_in_a_minute(settings: Any) -> None:
    settings.A2A_ADDRESS_CALLS = 2
    strangers.check_calls("192.0.2.1", 0.0)
    strangers.check_calls("192.0.2.1", 0.0)
    with pytest.raises(TooManyCalls):
        strangers.check_calls("192.0.2.1", 0.0)
    settings.A2A_ADDRESS_CALLS = 0
    strangers.check_calls("192.0.2.1", 0.0)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", ""),
        (None, ""),
    ],
)
def test_a_client_counts_by_its_address_or_its_network(address: str | None, network: str) -> None:
    assert network_of(address) == network


def behind(address: str, client: str = "203.0.113.7") -> str:
    """Return the origin of a call that the address sends with a proxy's header."""
    return origin_in({"REMOTE_ADDR": address, "HTTP_X_FORWARDED_FOR": client})


@pytest.fixture
def fresh_warnings() -> None:
    """Forget the addresses that the log has named, each of which it names once."""
    peers._warn_of_proxy.cache_clear()


@pytest.mark.usefixtures("fresh_warnings")
def test_callers_behind_an_unknown_proxy_share_no_limit(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.A2A_TRUSTED_PROXIES = []
    assert behind("10.0.0.1") == behind("10.0.0.1") == ""
    (line,) = caplog.messages
    assert "come from 10.0.0.1, and A2A_TRUSTED_PROXIES is empty" in line
    assert behind("8.8.8.8") == "8.8.8.8", "an outside address is no proxy of ours"
    assert origin_in({"REMOTE_ADDR": "10.0.0.1"}) == "10.0.0.1"


@pytest.mark.usefixtures("fresh_warnings")
def test_a_private_address_that_is_not_among_the_proxies_is_named_in_the_log(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.A2A_TRUSTED_PROXIES = ["10.0.0.7"]
    assert behind("10.0.0.7") == "203.0.113.7"
    assert behind("10.0.0.7", "192.168.1.5") == "192.168.1.5", "a proxy has callers in the private network too"
    assert not caplog.messages
    assert behind("10.0.0.8") == behind("10.0.0.8", "203.0.113.8") == "10.0.0.8"
    (line,) = caplog.messages
    assert "come from 10.0.0.8, and A2A_TRUSTED_PROXIES does not name it" in line
