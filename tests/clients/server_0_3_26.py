"""A server of the official Python SDK 0.3.26 with an agent for tests, over JSON-RPC and REST.

Runs in the SDK's own environment, where `a2a` is the SDK: `python -I server_0_3_26.py PORT PUBLIC_URL`. Its card
says that it is at the public URL, behind which a proxy may stand.
"""

# ruff: noqa: I001  # here a2a is the SDK, a third party

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task
from starlette.applications import Starlette
from starlette.routing import Mount

PORT, URL = int(sys.argv[1]), sys.argv[2]


class Agent(AgentExecutor):
    """Echoes; counts in chunks when told `count N`; asks back when told `ask`; works on when told `wait`."""

    async def execute(self, context, event_queue):
        task = context.current_task or new_task(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        verb, _, rest = context.get_user_input().partition(" ")
        await updater.start_work()
        if verb == "ask":
            await updater.requires_input(new_agent_text_message("Which one?"))
            return
        if verb == "wait":
            await asyncio.sleep(60)
        elif verb == "count":
            for number in range(int(rest)):
                part = Part(root=TextPart(text=f"{number} "))
                await updater.add_artifact([part], artifact_id="count", append=number > 0)
                await asyncio.sleep(0.05)
        else:
            text = TextPart(text=context.get_user_input())
            await updater.add_artifact([Part(root=text)], artifact_id="echo")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="reference",
    description="An agent for tests",
    version="1.0.0",
    url=f"{URL}/rpc",
    preferred_transport="JSONRPC",
    additional_interfaces=[AgentInterface(url=URL, transport="HTTP+JSON")],
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
)
handler = DefaultRequestHandler(
    agent_executor=Agent(),
    task_store=InMemoryTaskStore(),
    push_config_store=InMemoryPushNotificationConfigStore(),
)
rpc = A2AStarletteApplication(agent_card=card, http_handler=handler).routes(rpc_url="/rpc")
rest = A2ARESTFastAPIApplication(agent_card=card, http_handler=handler).build()
app = Starlette(routes=[*rpc, Mount("/", rest)])
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
