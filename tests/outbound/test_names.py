"""Names of hosts: looked up once, every answer checked, and none that hangs holds up others."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from tasks_app.outbound import dialling, policy, resolving
from tasks_app.outbound.policy import Blocked, Unknown
from tasks_app.relays import remotes
from tasks_app.webhooks.sending import Sender
from tests.conftest import PATIENCE, ROOT
from tests.outbound.conftest import answers
from tests.outbound.listener import PUBLIC, Listener
from tests.support.servers import COMMAND_SECONDS


def test_a_name_that_changes_its_mind_between_check_and_call_reaches_nothing(names: Any) -> None:
    async def story() -> int:
        async with Listener() as listener:
            url = f"https://rebinds.example:{listener.port}/"
            asked = names([[PUBLIC], ["127.0.0.1"]])
            await policy.check(url)
            async with dialling.client(seconds=2) as client:
                with pytest.raises(Blocked):
                    await client.post(url)
            assert asked == ["rebinds.example"] * 2
            return listener.hits

    assert asyncio.run(story()) == 0


def test_the_answer_that_was_checked_is_the_one_that_is_dialled(names: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled = []

    async def connect(self: Any, host: str, port: int, *_: Any) -> Any:
        dialled.append((host, port))
        raise dialling.httpcore.ConnectError

    asked = names([[PUBLIC, "2606:2800:21f:cb07::1"], ["127.0.0.1"]])
    monkeypatch.setattr(dialling.httpcore.AnyIOBackend, "connect_tcp", connect)

    async def story() -> None:
        async with dialling.client(seconds=2) as client:
            with pytest.raises(httpx.ConnectError):
                await client.post("https://twice.example/")

    asyncio.run(story())
    # The name is looked up once, and each of its addresses is tried.
    assert (asked, dialled) == (["twice.example"], [(PUBLIC, 443), ("2606:2800:21f:cb07::1", 443)])


@pytest.mark.parametrize("bad", ["127.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "169.254.169.254", "nonsense"])
def test_one_answer_that_is_not_allowed_is_enough(names: Any, bad: str) -> None:
    names([[PUBLIC, bad]])
    with pytest.raises(Blocked):
        asyncio.run(policy.check("https://mixed.example/"))
    names([[bad, PUBLIC]])
    with pytest.raises(Blocked):
        asyncio.run(policy.check("https://mixed.example/"))


def test_operators_open_names_and_networks(names: Any, settings: Any) -> None:
    names([["10.1.2.3"]])
    settings.A2A_OUTBOUND_HOSTS = ["Hooks.Internal", "10.1.0.0/16", "192.168.7.7", "4000::/16"]
    assert policy.target("http://hooks.internal:81/") == ("hooks.internal", 81)
    asyncio.run(policy.check("http://hooks.internal/"))
    asyncio.run(policy.check("https://else.internal/"))
    assert policy.target("http://192.168.7.7/") == ("192.168.7.7", 80)
    with pytest.raises(Blocked):
        policy.target("http://else.internal/")
    asyncio.run(policy.check("https://[4000::1]/"))
    names([["10.2.2.3"]])
    with pytest.raises(Blocked):
        asyncio.run(policy.check("https://else.internal/"))


def test_a_name_that_leads_nowhere_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(host: str, port: int, _: Any) -> policy.Answers:
        raise socket.gaierror

    async def silence(host: str, port: int, _: Any) -> policy.Answers:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(policy, "LOOKUP_SECONDS", 0.05)
    for lookup in (nothing, silence):
        monkeypatch.setattr(policy, "lookup", lookup)
        with pytest.raises(Unknown):
            asyncio.run(policy.check("https://nowhere.example/"))


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_names_that_hang_hold_up_no_other_name(
    loops: Callable[[], asyncio.AbstractEventLoop],
    hanging: threading.Semaphore,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    monkeypatch.setattr(policy, "LOOKUP_SECONDS", PATIENCE)

    async def story() -> None:
        slow = [
            asyncio.create_task(policy.resolve(f"{number}.hangs.example", 443, pool))
            for pool in (resolving.registering, resolving.sending)
            for number in range(40)
        ]
        for _ in slow:
            assert await asyncio.to_thread(hanging.acquire, timeout=20)
        # All slow look-ups still wait.
        await policy.check("https://localhost:1024/")
        assert await policy.resolve("localhost", 443, resolving.sending)
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()

    with asyncio.Runner(loop_factory=loops) as runner:
        runner.run(story())


def test_there_is_a_bound_to_names_that_are_looked_up_and_none_to_addresses(hanging: threading.Semaphore) -> None:
    lookups = resolving.Lookups("few", at_once=2)

    async def story() -> None:
        slow = [asyncio.create_task(policy.resolve(f"{n}.hangs.example", 443, lookups)) for n in range(2)]
        for _ in slow:
            assert await asyncio.to_thread(hanging.acquire, timeout=20)
        with pytest.raises(Unknown):
            await policy.resolve("localhost", 443, lookups)
        assert await policy.resolve(PUBLIC, 443, lookups) == [PUBLIC]
        for task in slow:
            task.cancel()

    asyncio.run(story())


def test_calls_that_look_for_the_same_name_share_a_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = resolving.Lookups("few", at_once=2)
    asked, over = threading.Semaphore(0), threading.Event()

    def getaddrinfo(host: str, *_: Any, **__: Any) -> Any:
        asked.release()
        if host == "slow.example":
            assert over.wait(60)
        return answers(PUBLIC)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def story() -> None:
        slow = [asyncio.create_task(policy.resolve("slow.example", 443, lookups)) for _ in range(20)]
        assert await asyncio.to_thread(asked.acquire, timeout=20)
        assert await policy.resolve("quick.example", 443, lookups) == [PUBLIC]
        # A caller whose time is up leaves the look-up to the others.
        slow.pop().cancel()
        over.set()
        assert await asyncio.gather(*slow) == [[PUBLIC]] * 19
        await policy.resolve("slow.example", 443, lookups)

    asyncio.run(story())
    assert [asked.acquire(blocking=False) for _ in range(3)] == [True, True, False], (
        "one look-up of each, and one later"
    )
    assert not lookups.under_way


def test_names_of_callers_take_no_room_from_places_of_operators() -> None:
    def lookups_of(client: httpx.AsyncClient) -> resolving.Lookups:
        return client._transport._pool._network_backend.lookups  # type: ignore[attr-defined, no-any-return]

    assert lookups_of(remotes.guarded_http()) is resolving.calling
    assert lookups_of(Sender().open_client()) is resolving.sending


_LEAVES = """
import asyncio, socket, threading, time
asked = threading.Event()

def getaddrinfo(*_, **__):
    asked.set()
    time.sleep(300)

socket.getaddrinfo = getaddrinfo
from tasks_app.outbound import policy, resolving
policy.LOOKUP_SECONDS = 0.1
try:
    asyncio.run(policy.check("https://hangs.example/"))
except policy.Unknown:
    assert asked.wait(60)
    print("leaves")
"""


def test_a_process_ends_although_a_name_hangs(tmp_path: Path) -> None:
    environment = os.environ | {"DATA_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", _LEAVES]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    assert "leaves" in done.stdout
