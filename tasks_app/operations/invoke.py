"""The operation that calls an agent by its name, or by that of a skill, with an object of arguments: a send whose
message is made of the arguments."""

from typing import Any

from msgspec.structs import replace

from a2a.agents import Agent
from a2a.errors import UnknownAgent
from a2a.requests import Invoke, SendMessage, StreamInvoke, StreamMessage
from a2a.types import Json, Part
from tasks_app.cards.terms import latency_of
from tasks_app.operations.choose_agent import address_agent, find_by_name
from tasks_app.operations.operation import Context, Grant, Wait
from tasks_app.operations.send import send

TEXTS = ("text", "message")
"""The arguments that may be the text for an agent without inputs of its own."""
_FIELDS = tuple(name for name in SendMessage.__struct_fields__ if name not in {"agent", "message", "metadata"})


async def invoke(request: Invoke, context: Context) -> Grant:
    """Send the arguments to the agent. Raises UnknownAgent with the fact `method` for a name that is not known.

    The wait for the outcome ends after the latency of the agent, and its task goes on.
    """
    agent = _find(request, context)
    message_request = _message_request(request, agent)
    context.agent_name = agent.name
    grant = await send(message_request, context)
    return replace(grant, seconds=latency_of(agent)) if isinstance(grant, Wait) else grant


def _find(request: Invoke, context: Context) -> Agent:
    """Return the agent of the address, which takes any method, or else the one with that name or skill.

    Raises UnknownAgent.
    """
    if context.agent is None:
        agent = find_by_name(context.caller, request.name)
        if agent is None:
            raise UnknownAgent(method=request.name[:64])
        return agent
    return address_agent(context)


def _message_request(request: Invoke, agent: Agent) -> SendMessage:
    """Return the request that sends the arguments. The name is a part of the message, so that its digest covers it."""
    values: Json = {name: getattr(request, name) for name in _FIELDS}
    arguments: Any = request.message.parts[0].data
    parts = tuple(_parts(agent, arguments))
    values["message"] = replace(request.message, parts=parts, metadata={"method": request.name})
    values |= {"agent": agent.name, "metadata": {"skill": request.name}}
    if isinstance(request, StreamInvoke):
        return StreamMessage(**values, after=request.after)
    return SendMessage(**values)


def _parts(agent: Agent, arguments: dict[str, Any]) -> list[Part]:
    """Return the arguments as an agent reads them: its inputs as data, and for an agent without inputs a text, with all
    other arguments as data."""
    if agent.inputs is not None:
        return [Part(data=arguments)]
    name = next((name for name in TEXTS if isinstance(arguments.get(name), str)), None)
    rest = {key: value for key, value in arguments.items() if key != name}
    text = [] if name is None else [Part(text=arguments[name])]
    return [*text, Part(data=rest)] if rest or not text else text
