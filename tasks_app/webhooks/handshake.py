"""The handshake with a receiver of webhooks before its first delivery.

It is the one of CloudEvents, HTTP 1.1 Web Hooks for Event Delivery 1.0.2, section 4: an OPTIONS request names this
server, and the answer names it again. A site that did not ask for webhooks does not answer so, and gets nothing else.
"""

import asyncio
from datetime import datetime, timedelta
from functools import partial

import httpx
from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace

from tasks_app.database.bridge import bridge
from tasks_app.database.waits import UNLIMITED
from tasks_app.database.work import Do, DoApart
from tasks_app.models import Receiver
from tasks_app.outbound import policy
from tasks_app.sealing import Unreadable, url_of
from tasks_app.webhooks import receivers
from tasks_app.webhooks.agreement import ALLOWED_ORIGIN, REQUEST_ORIGIN, is_needed, sender_name, site_of
from tasks_app.webhooks.leases import DeliveryLease
from tasks_app.webhooks.limits import Postponement
from tasks_app.webhooks.posting import call
from tasks_app.webhooks.schedule import TryResult

HANDSHAKE_SECONDS = 5.0
REFUSAL = timedelta(seconds=60)
"""The time for which a refusal counts, so that many webhooks of an owner make one request in a minute."""
DATABASE_SECONDS = 5.0
"""Seconds until the next try after the database failed to supply the receiver."""


def read_answer(response: httpx.Response) -> TryResult:
    """Return whether the receiver agrees. Its header decides: many sites answer OPTIONS with 200."""
    allowed = response.headers.get(ALLOWED_ORIGIN, "").strip().lower()
    if response.is_success and allowed in {"*", sender_name().lower()}:
        return TryResult()
    reason = f"it answered {response.status_code} {'with another' if allowed else 'without'} {ALLOWED_ORIGIN}"
    return TryResult(
        error=f"The receiver has not agreed to deliveries: to OPTIONS {reason}.",
        retry_after=response.headers.get("Retry-After", "")[:64],
    )


class Handshakes:
    """The handshakes of a sender."""

    def __init__(self) -> None:
        self.under_way: dict[tuple[int, str], asyncio.Task[TryResult | None]] = {}
        """The looks at a receiver under way, with the handshakes that they lead to, by owner and site."""

    async def meet(self, client: httpx.AsyncClient, lease: DeliveryLease, now: datetime) -> TryResult | None:
        """Return None if the receiver may get the delivery, or else the result of a try that was not made.

        Raises Postponement if the receiver has agreed just now, since too little of the lease may be left, and
        Crowded.
        """
        try:
            url = url_of(lease)
            target = policy.target(url)
        except (Unreadable, policy.Blocked):
            return None  # The try itself says why it fails.
        if not is_needed(target.host):
            return None
        pair = lease.owner_id, site_of(url, target)
        # Tries that come together look together, too: one that looked alone might see no agreement, and ask for it
        # after another has just recorded it.
        if (look := self.under_way.get(pair)) is None:
            look = asyncio.create_task(_look(client, url, *pair, now))
            self.under_way[pair] = look
            look.add_done_callback(lambda _: self.under_way.pop(pair))
        return await asyncio.shield(look)


async def _look(client: httpx.AsyncClient, url: str, owner_id: int, site: str, now: datetime) -> TryResult | None:
    """Look whether the receiver has agreed, and ask it if that is unknown. Returns and raises as `meet` does."""
    receiver = await _find(owner_id, site)
    if receiver is not None and receiver.agrees(now):
        return None
    if receiver is not None and receiver.problem and now < receiver.asked_at + REFUSAL:
        return TryResult(error=receiver.problem, is_made=False)
    result = await _shake_hands(client, owner_id, url, site)
    if result.error:
        return result
    raise Postponement(0.0, "its receiver has agreed to deliveries")


async def _shake_hands(client: httpx.AsyncClient, owner_id: int, url: str, site: str) -> TryResult:
    """Ask the receiver, and record its answer. Raises Crowded."""
    fields = {REQUEST_ORIGIN: sender_name(), "User-Agent": "Taskdesk", "Connection": "close"}
    result = await call(client, "OPTIONS", url, fields, read=read_answer, seconds=HANDSHAKE_SECONDS)
    if not result.hopeless:
        await bridge.ask(Do(partial(receivers.record_answer, owner_id, site, result.error)), UNLIMITED)
    return replace(result, is_made=False)


async def _find(owner_id: int, site: str) -> Receiver | None:
    try:
        return await bridge.ask(DoApart(partial(receivers.find, owner_id, site)))
    except (DatabaseError, InterfaceError) as error:
        raise Postponement(DATABASE_SECONDS, "held back: the database could not supply its receiver") from error
