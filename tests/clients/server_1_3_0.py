"""A server of the official Python SDK 1.3.0 with an agent for tests, over JSON-RPC and REST of 1.0 and of 0.3.

Runs in the SDK's own environment, where `a2a` is the SDK: `python -I server_1_3_0.py PORT PUBLIC_URL`. Its card
says that it is at the public URL, behind which a proxy may stand.
"""

# ruff: noqa: I001  # here a2a is the SDK, a third party

import asyncio
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

PORT, URL = int(sys.argv[1]), sys.argv[2]


class Agent(AgentExecutor):
    """Echoes; counts in chunks when told `count N`; asks back when told `ask`; works on when told `wait`."""

    async def execute(self, context, event_queue):
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        verb, _, rest = context.get_user_input().partition(" ")
        await updater.start_work()
        if verb == "ask":
            await updater.requires_input(new_text_message("Which one?"))
            return
        if verb == "wait":
            await asyncio.sleep(60)
        elif verb == "count":
            for number in range(int(rest)):
                part = new_text_part(f"{number} ")
                await updater.add_artifact([part], artifact_id="count", append=number > 0)
                await asyncio.sleep(0.05)
        else:
            await updater.add_artifact([new_text_part(context.get_user_input())], artifact_id="echo")
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


card = AgentCard(
    name="reference",
    description="An agent for tests",
    version="1.0.0",
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    supported_interfaces=[
        AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
        for version in ("1.0", "0.3")
        for binding, url in (("JSONRPC", f"{URL}/rpc"), ("HTTP+JSON", URL))
    ],
)
handler = DefaultRequestHandler(
    agent_executor=Agent(),
    task_store=InMemoryTaskStore(),
    agent_card=card,
    push_config_store=InMemoryPushNotificationConfigStore(),
)
app = Starlette(
    routes=[
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        *create_rest_routes(handler, enable_v0_3_compat=True),
    ]
)
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
