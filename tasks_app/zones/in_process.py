"""The carrier within a process, and the door by which calls come in without HTTP."""

import asyncio

from a2a import languages
from tasks_app.callers.schemes import evidence_in
from tasks_app.event_log.readers import readers
from tasks_app.transports.call import Call
from tasks_app.transports.receiving import Batch, receive
from tasks_app.zones.carriers import PATIENCE


async def answer(body: bytes, key: str, door: str) -> bytes:
    """Perform a call with an API key, and return the answer; empty for a notification. Call it on the doors' loop."""
    call = Call(
        endpoint=languages.ALL.endpoints["rpc"],
        door=door,
        evidence=evidence_in({"HTTP_AUTHORIZATION": f"Bearer {key}"} if key else {}),
        metadata=lambda name: None,
        address=lambda: "",
    )
    reply = await receive(call, body)
    if isinstance(reply, Batch):
        try:
            return bytes(await reply.payload())
        finally:
            reply.release()
    try:
        return bytes(await reply.late.payload(early=False) if reply.late else reply.payload or b"")
    finally:
        reply.release()


class InProcess:
    """Calls the agents of this process, as the caller of an API key."""

    patience = PATIENCE

    def __init__(self, key: str) -> None:
        self.key = key

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        """Return the answer. Calls are performed on the loop of the doors, where the readers of tasks are."""
        work = answer(body, self.key, "in-process")
        loop = readers.loop
        if loop is None or loop is asyncio.get_running_loop() or not loop.is_running():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
