"""``python -m tests.faults.hasty PORT KEY TASK SOCKETS DEPTH SECONDS``: a client with many calls in flight.

It has so many of them on each WebSocket connection, sends the next one as soon as one is answered, and prints how many
answers it got, by kind.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter

from websockets import connect

from tests.faults.attackers import NICENESS
from tests.faults.clients import envelope
from tests.support.servers import PATIENCE


class Hasty:
    """Asks for one task again and again."""

    def __init__(self, port: int, key: str, task_id: str) -> None:
        self.address = f"ws://127.0.0.1:{port}/ws"
        self.headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
        self.task_id = task_id
        self.answers: Counter[str] = Counter()

    async def ask(self, depth: int, ends: float) -> None:
        """Have so many calls in flight on one connection until the time has come, and then read all answers."""
        opening = connect(self.address, additional_headers=self.headers, open_timeout=PATIENCE, proxy=None)
        async with opening as socket:
            for number in range(depth):
                await socket.send(self._get(number))
            under_way = depth
            while under_way:
                answer = json.loads(await socket.recv())
                self.answers["result" if "result" in answer else str(answer["error"]["code"])] += 1
                if time.monotonic() < ends:
                    await socket.send(self._get(answer["id"]))
                else:
                    under_way -= 1

    def _get(self, number: int) -> str:
        return envelope("GetTask", {"id": self.task_id}, number).decode()


async def main(port: str, key: str, task_id: str, sockets: str, depth: str, seconds: str) -> None:
    hasty, ends = Hasty(int(port), key, task_id), time.monotonic() + float(seconds)
    await asyncio.gather(*(hasty.ask(int(depth), ends) for _ in range(int(sockets))))
    print(json.dumps(hasty.answers))  # noqa: T201  # for the test


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(main(*sys.argv[1:]))
