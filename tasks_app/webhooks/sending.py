"""The sender of a process: a thread with an event loop of its own that leases webhooks and makes the tries.

A hint wakes it when this process has written a delivery. It also polls, for tries that have become due and for
deliveries of other processes.
"""

import asyncio
import contextlib
import logging
import os
import random
import socket
import threading
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

import httpx
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import log_error, log_failure
from tasks_app.database.waits import UNLIMITED
from tasks_app.database.work import Do, DoApart
from tasks_app.event_log import SEAL_BATCH, MakeBody, NoBody, Unwanted, seal_addresses
from tasks_app.hints import DueRows, hints
from tasks_app.limits.buckets import DebtBuckets
from tasks_app.outbound import dialling
from tasks_app.outbound.resolving import sending
from tasks_app.webhooks import leases
from tasks_app.webhooks.handshake import Handshakes
from tasks_app.webhooks.keys import end_webhooks_without_credential
from tasks_app.webhooks.leases import DeliveryLease
from tasks_app.webhooks.limits import CROWDED_SECONDS, Busy, Exhausted, Places, Postponement, place_limit_reason
from tasks_app.webhooks.posting import TRY_SECONDS, post
from tasks_app.webhooks.schedule import TryResult

log = logging.getLogger(__name__)
BODY_SECONDS = 5.0
"""Seconds until the next try after the database failed to supply a body."""
SEALINGS = 20
"""Transactions in a row that seal addresses. After them calls get the lane."""
LAST_SECONDS = 1.0
"""Seconds that tries under way get when the process ends. Another process makes the others again."""


class Sender:
    """The thread that makes the tries of this process."""

    def __init__(self) -> None:
        self.worker = f"{socket.gethostname()}:{os.getpid()}"
        self.thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wakeup = asyncio.Event()
        self.stopping = False
        self.client: httpx.AsyncClient | None = None
        self.running: dict[asyncio.Task[None], DeliveryLease] = {}
        self.places = Places()
        self.handshakes = Handshakes()
        self.last_tidy = 0.0
        """The time of the last _tidy(), on the monotonic clock."""
        self.volumes = DebtBuckets(lambda: settings.A2A_OWNER_DELIVERY_BYTES)

    @property
    def alive(self) -> bool:
        """Whether the thread runs, or was never started; false if it died."""
        return self.thread is None or self.thread.is_alive()

    def start(self) -> None:
        if self.thread is not None:
            return
        self.stopping, self.wakeup, self.running = False, asyncio.Event(), {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, args=(self.loop,), name="deliveries", daemon=True)
        self.thread.start()
        hints.on_due(DueRows.DELIVERIES, self.wake)

    def wake(self) -> None:
        """Say that there may be a delivery to send. Any thread may call this."""
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self.wakeup.set)

    def drain(self) -> None:
        """Lease no more webhooks."""
        hints.forget_due(DueRows.DELIVERIES, self.wake)
        self.stopping = True
        self.wake()

    def stop(self) -> None:
        """End the thread. Tries under way get LAST_SECONDS."""
        self.drain()
        if self.thread is not None:
            self.thread.join(LAST_SECONDS + 5)
        self.thread = self.loop = None

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._live())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _live(self) -> None:
        while not self.stopping:
            self.wakeup.clear()
            try:
                await self._tidy()
                more = await self.look()
            except Exception:  # noqa: BLE001  # it is logged, and the work repeated
                log_failure(log, "deliveries could not be looked for; trying again")
                more = False
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.A2A_SWEEP_SECONDS):
                        await self.wakeup.wait()
        await self._wind_down()

    async def _tidy(self) -> None:
        """Now and then, end webhooks whose credential has ended, and seal addresses that are stored in clear."""
        if monotonic() < self.last_tidy + settings.A2A_SWEEP_SECONDS:
            return
        self.last_tidy = monotonic()
        await bridge.ask(Do(end_webhooks_without_credential), UNLIMITED)
        for _ in range(SEALINGS):
            if await bridge.ask(Do(seal_addresses), UNLIMITED) < SEAL_BATCH:
                break

    async def look(self) -> bool:
        """Lease due webhooks for the free slots, and begin their tries. Return whether there may be more."""
        free = settings.A2A_DELIVERY_SLOTS - len(self.running)
        if free <= 0:
            return False  # The end of a try wakes this loop.
        busy = Busy(self.running.values(), self.volumes)
        # Most looks find nothing, so the first statement is a read, outside the lane of the writers.
        if not await bridge.ask(DoApart(lambda: leases.due(clock.shared(), busy).exists())):
            return False
        # The lease begins when the lane runs the function, so a busy lane does not shorten it.
        fresh = await bridge.ask(Do(lambda: leases.take(self.worker, free, busy)), UNLIMITED)
        for lease in fresh:
            task = asyncio.get_running_loop().create_task(self._send(lease))
            self.running[task] = lease
            task.add_done_callback(self._finish)
        return bool(fresh)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self.running.pop(task, None)
        self.wakeup.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log_error(log, error, "the result of a try could not be recorded; it is made again after its lease")

    async def _send(self, lease: DeliveryLease) -> None:
        began = clock.now()
        if began + timedelta(seconds=TRY_SECONDS) > lease.until:
            # Too little of the lease is left: another sender could begin before this try ends.
            await bridge.ask(Do(partial(leases.release, lease)), UNLIMITED)
            return
        try:
            result = await self._try(lease, began)
        except Postponement as error:
            await bridge.ask(Do(partial(leases.postpone, lease, error.seconds, str(error))), UNLIMITED)
            return
        except asyncio.CancelledError:
            await asyncio.shield(bridge.ask(Do(partial(leases.release, lease)), UNLIMITED))
            raise
        except (DatabaseError, InterfaceError):
            raise  # The try is made again after its lease.
        except Exception as error:  # noqa: BLE001  # it is logged, and counts: else the try would be made for ever
            log_error(log, error, "delivery %s: its try ended with an error of this server", lease.delivery)
            result = TryResult(error="The try ended with an error of this server, which is in its log.")
        finally:
            self.places.leave(lease)
        finish, chance = clock.now(), random.random()  # noqa: S311  # spreads load, protects nothing
        await bridge.ask(Do(partial(leases.settle, lease, result, began, finish, chance)), UNLIMITED)
        level = logging.INFO if result.status and result.status < 300 else logging.WARNING
        event, outcome = f"{lease.task_id}/{lease.seq}", result.error or result.status
        log.log(level, "delivery %s of event %s, attempt %d: %s", lease.delivery, event, lease.attempt + 1, outcome)

    async def _try(self, lease: DeliveryLease, began: datetime) -> TryResult:
        """Meet the receiver, make the body, check the limits, and post. Raises Postponement."""
        client = self.open_client()
        # Each asyncio task has its own context variables, so this applies to this try only.
        dialling.arrival.set(partial(self.places.enter, lease, 0, began))
        try:
            refusal = await self.handshakes.meet(client, lease, began)
            return refusal or await self._post(client, lease, began)
        except Exhausted as error:
            raise Postponement(error.seconds, place_limit_reason()) from None
        except dialling.Crowded:
            seconds = CROWDED_SECONDS * (0.5 + random.random())  # noqa: S311  # spreads load, protects nothing
            raise Postponement(seconds, "held back: too many tries are under way at its address") from None

    def open_client(self) -> httpx.AsyncClient:
        """Return the client of this sender."""
        self.client = self.client or dialling.client(seconds=TRY_SECONDS, lookups=sending)
        return self.client

    async def _post(self, client: httpx.AsyncClient, lease: DeliveryLease, began: datetime) -> TryResult:
        """Make the body and post it, within the bytes of the owner. Raises Postponement and Crowded."""
        try:
            body = await _body(lease)
        except NoBody as error:
            return TryResult(error=str(error), hopeless=True, is_unwanted=isinstance(error, Unwanted))
        size = len(body.encode())
        if not self.volumes.use(lease.owner_id, size, began):
            raise Postponement(self.volumes.wait(lease.owner_id, began), leases.byte_limit_reason())
        dialling.arrival.set(partial(self.places.enter, lease, size, began))
        try:
            return await post(client, lease, body, began)
        except dialling.Crowded:
            self.volumes.give_back(lease.owner_id, size, began)
            raise

    async def _wind_down(self) -> None:
        if self.running:
            _, late = await asyncio.wait(list(self.running), timeout=LAST_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=LAST_SECONDS)
        if self.client is not None:
            await self.client.aclose()
            self.client = None


async def _body(lease: DeliveryLease) -> str:
    """Return the body of the delivery. Raises NoBody, and Postponement if the database fails."""
    if lease.body is not None:
        return lease.body
    item = MakeBody(task_id=lease.task_id, seq=lease.seq, language=lease.language, notices=lease.notices)
    try:
        body = await bridge.ask(item)
    except (DatabaseError, InterfaceError) as error:
        log.warning("the body of delivery %s could not be made: %s", lease.delivery, error)
        raise Postponement(BODY_SECONDS, "held back: the database could not supply its body") from error
    return body.decode()


sender = Sender()
"""The sender of this process."""
