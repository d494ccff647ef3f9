"""The clients of the five systems at work: each goes through its flow again and again, and reads the tasks of others.

Each flow has one error that is meant. Any other one ends the test.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.faults.nodes import KEY
from tests.seeds.acp.client import AcpClient, RpcError
from tests.seeds.adr.client import Agent, AgentError
from tests.seeds.sparc.client import PHASES, Refused, SparcClient
from tests.seeds.vapora.client import TaskNotFound, VaporaClient
from tests.seeds.zone.client import ExecutionError, VerificationZone
from tests.support.servers import NO_TLS, PATIENCE

AGENT = "repeats"
HEADERS = {"Authorization": f"Bearer {KEY}"}


class Singer(ABC):
    """One client at work. Each method is called in a thread of its own."""

    can_read = True
    """Whether the language has a method that reads any task."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.made: dict[str, str] = {}
        """The tasks of this client, and what their agent was told."""
        self.rounds = 0
        self.stack = ExitStack()

    def sing(self, until: float) -> None:
        """Go through the flow until a time, at least once."""
        while self.rounds == 0 or monotonic() < until:
            self.flow(f"{type(self).__name__}-{uuid4()}")
            self.rounds += 1

    @abstractmethod
    def flow(self, text: str) -> None:
        """Make tasks with a text, by the methods of the language, and meet the error that is meant."""

    @abstractmethod
    def read(self, task_id: str) -> tuple[str, str]:
        """Return the state of a task in small letters, and its output."""

    def note(self, task_id: str, text: str, output: str) -> None:
        """Remember a task, whose output must be that of the text."""
        assert output == f"heard {text}"
        self.made[task_id] = text

    def http(self, **options: Any) -> httpx.Client:
        return self.stack.enter_context(httpx.Client(verify=NO_TLS, timeout=PATIENCE, headers=HEADERS, **options))


class Acp(Singer):
    def __init__(self, url: str, client: AcpClient) -> None:
        super().__init__(url)
        self.client = client
        self.stack.enter_context(client.http)

    def flow(self, text: str) -> None:
        message = {"role": "user", "parts": [{"type": "TextPart", "content": text}]}
        task = self.client.task("tasks.create", {"initialMessage": message, "assignTo": AGENT})
        done = self.client.settled(task["taskId"], "COMPLETED")
        self.note(task["taskId"], text, output_of(done["artifacts"], "content"))
        with pytest.raises(RpcError) as error:
            self.client.call("tasks.get", {"taskId": "none"})
        assert error.value.code == -40001

    def read(self, task_id: str) -> tuple[str, str]:
        task = self.client.task("tasks.get", {"taskId": task_id})
        return task["status"].lower(), output_of(task["artifacts"], "content")


class Adr(Singer):
    can_read = False

    def flow(self, text: str) -> None:
        asyncio.run(self._flow(text))

    async def _flow(self, text: str) -> None:
        async with httpx.AsyncClient(verify=NO_TLS, timeout=PATIENCE) as http:
            agent = Agent(http=http, url=self.url, token=KEY)
            assert (await agent.health())["status"] == "ok"
            result = await agent.invoke(AGENT, {"text": text}, request_id=text)
            self.note(result["task_id"], text, result["text"])
            assert await agent.invoke(AGENT, {"text": text}, request_id=text) == result
            assert "".join([token async for token in agent.stream(AGENT, {"text": text}, request_id=text)]) == (
                f"heard {text}"
            )
            with pytest.raises(AgentError) as error:
                await Agent(http=http, url=f"{self.url}/agents/nobody", token=KEY).invoke("x", {})
            assert error.value.reason == "AGENT_UNAVAILABLE"

    def read(self, task_id: str) -> tuple[str, str]:
        raise NotImplementedError("ADR-002 reads a task by its own call alone")


class Vapora(Singer):
    def flow(self, text: str) -> None:
        task = self._call(lambda client: client.send(text, text))
        self.note(task["id"], text, output_of(task["artifacts"], "text"))
        assert self._call(lambda client: client.send(text, text))["id"] == task["id"]
        with pytest.raises(TaskNotFound):
            self._call(lambda client: client.get("none"))

    def read(self, task_id: str) -> tuple[str, str]:
        task = self._call(lambda client: client.get(task_id))
        return task["status"]["state"], output_of(task["artifacts"], "text")

    def _call(self, call: Callable[[VaporaClient], Any]) -> Any:
        async def work() -> Any:
            async with httpx.AsyncClient(verify=NO_TLS, timeout=PATIENCE, headers=HEADERS) as http:
                return await call(VaporaClient(http, self.url, asyncio.sleep))

        return asyncio.run(work())


class Zone(Singer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.client = VerificationZone(self.http(), url)

    def flow(self, text: str) -> None:
        result = self.client.execute(text)
        self.note(result["task_id"], text, result["response_text"])
        accepted = self.client.execute(text, wait=False)
        while (result := self.client.call("get_task", {"task_id": accepted["task_id"]}))["status"] == "accepted":
            pass
        self.note(result["task_id"], text, result["response_text"])
        with pytest.raises(ExecutionError) as error:
            self.client.call("get_task", {"task_id": "none"})
        assert error.value.code == -38001

    def read(self, task_id: str) -> tuple[str, str]:
        result = self.client.call("get_task", {"task_id": task_id})
        return result["status"].replace("success", "completed"), result["response_text"]


class Sparc(Singer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.client = SparcClient(self.http(base_url=url), "/sparc")

    def flow(self, text: str) -> None:
        self._workflow(text)
        self._batch(text)
        place = {"namespace": "chorus", "key": text}
        assert self.client.call("memory/store", place | {"data": text, "ifVersion": 0})["version"] == 1
        assert self.client.call("memory/retrieve", place)["data"] == text
        assert self.client.call("memory/delete", place)["deleted"]

    def _message(self, text: str) -> dict[str, Any]:
        return {"role": "user", "messageId": str(uuid4()), "parts": [{"kind": "text", "text": text}]}

    def _workflow(self, text: str) -> None:
        metadata = {"metadata": {"workflowId": text, "agent": AGENT}}
        task = self.client.call("message/send", {"message": self._message(text)} | metadata)
        self.note(task["id"], text, output_of(task["artifacts"], "text"))
        _, events = self.client.stream("message/stream", {"message": self._message(text)} | metadata)
        assert (events[0][0], events[-1][1]["status"]["state"]) == ("task-status-update", "completed")
        self.note(
            events[0][1]["id"], text, output_of([one["artifact"] for _, one in events if "artifact" in one], "text")
        )
        with pytest.raises(Refused) as error:
            self.client.call("sparc/phase/set", {"workflowId": text, "phase": PHASES[2]})
        assert error.value.code == -33001

    def _batch(self, text: str) -> None:
        items = [{"message": self._message(f"{text} {number}")} for number in range(3)]
        batch = self.client.call("batchtools/execute", {"operation": AGENT, "tasks": items})
        ends = monotonic() + PATIENCE
        while (task := self.client.call("tasks/get", {"taskId": batch["id"]}))["status"]["state"] == "working":
            assert monotonic() < ends, task
        assert task["status"]["state"] == "completed"
        for number, part in enumerate(task["artifacts"][0]["parts"]):
            self.note(part["data"]["taskId"], f"{text} {number}", "".join(part["data"]["output"]))

    def read(self, task_id: str) -> tuple[str, str]:
        task = self.client.call("tasks/get", {"taskId": task_id})
        return task["status"]["state"], output_of(task["artifacts"], "text")


def output_of(artifacts: list[dict[str, Any]], member: str) -> str:
    return "".join(part[member] for artifact in artifacts for part in artifact["parts"])
