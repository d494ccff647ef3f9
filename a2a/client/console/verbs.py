"""The verbs of the command line: send, stream, get, list, cancel, tail, agents, card and check."""

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

from a2a.client import Client, Trust, errors
from a2a.client.addresses import HTTP, check_address
from a2a.client.console import FAILED, OK, WAITS, Options, Verb, WrongUsage, add_connection, number, read_text, text
from a2a.client.console.output import Output
from a2a.client.console.smoke import check
from a2a.client.stream import Stream
from a2a.dialects.json.json_1_0 import encode_task
from a2a.states import INTERRUPTED, TaskState
from a2a.terminals import safe_json
from a2a.types import Json, Message, Task

ENDS_BADLY = {TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED}


def _exit_code(state: TaskState | None) -> int:
    if state in ENDS_BADLY:
        return FAILED
    return WAITS if state in INTERRUPTED else OK


def _message_arguments(parser: ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("text", type=text, help="the message")
    parser.add_argument("--task", type=text, metavar="ID", help="continue this task")
    parser.add_argument("--context", type=text, metavar="ID", help="continue this conversation")


def _send_arguments(parser: ArgumentParser) -> None:
    _message_arguments(parser)
    parser.add_argument("--no-wait", action="store_true", help="return as soon as the task exists")


def _task_arguments(parser: ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("task", type=text, help="the id of the task")


def _tail_arguments(parser: ArgumentParser) -> None:
    _task_arguments(parser)
    parser.add_argument("--after", type=number(0), metavar="N", help="begin with the task as of the event of this id")


def _list_arguments(parser: ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument("--context", type=text, metavar="ID", help="tasks of this conversation")
    parser.add_argument("--state", choices=[state.value for state in TaskState], help="tasks in this state")
    parser.add_argument("--limit", type=number(1), default=50, metavar="N", help="the largest number of tasks (50)")


def _card_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=("show", "verify"), help="print the card, or verify its signatures")
    add_connection(parser)
    parser.add_argument("--keys", type=text, metavar="FILE", help="a JWK Set to verify with")
    parser.add_argument(
        "--host", type=text, action="append", default=[], help="a host whose key sets are trusted (jku)"
    )


def _check_arguments(parser: ArgumentParser) -> None:
    add_connection(parser)
    parser.add_argument(
        "--send", type=text, metavar="TEXT", help="also send this message, wait for its task, and stream it"
    )


# -------------------------------------------------------------------- verbs


async def send(client: Client, options: Options, output: Output) -> int:
    reply = await client.send(
        options["text"],
        task_id=options["task"],
        context_id=options["context"],
        return_immediately=options["no_wait"],
    )
    output.reply(reply)
    return OK if isinstance(reply, Message) or options["no_wait"] else _exit_code(reply.status.state)


async def stream(client: Client, options: Options, output: Output) -> int:
    return await _follow(client.stream(options["text"], task_id=options["task"], context_id=options["context"]), output)


async def tail(client: Client, options: Options, output: Output) -> int:
    try:
        return await _follow(client.subscribe(options["task"], after=options["after"]), output)
    except (errors.UnsupportedOperation, errors.InvalidParams):
        # A task that has ended has no stream.
        return await get(client, options, output)


async def _follow(updates: Stream, output: Output) -> int:
    state = None
    async with updates:
        async for update in updates:
            output.update(update)
            state = update.state or state
    return _exit_code(state)


async def get(client: Client, options: Options, output: Output) -> int:
    task = await client.get_task(options["task"])
    output.reply(task)
    return _exit_code(task.status.state)


async def cancel(client: Client, options: Options, output: Output) -> int:
    output.reply(await client.cancel_task(options["task"]))
    return OK


async def list_tasks(client: Client, options: Options, output: Output) -> int:
    state = TaskState(options["state"]) if options["state"] else None
    count = 0
    size = min(options["limit"], 100)
    async for task in client.all_tasks(context_id=options["context"], state=state, page_size=size):
        _print_row(task, output)
        count += 1
        if count >= options["limit"]:
            break
    return OK


def _print_row(task: Task, output: Output) -> None:
    if output.as_json:
        output.json(encode_task(task))
    else:
        output.line(f"{task.id}  {task.status.timestamp:%Y-%m-%dT%H:%M:%SZ}  {task.status.state.value}")


async def agents(client: Client, options: Options, output: Output) -> int:
    """List the agents of a server that has a catalogue, or the skills on the card."""
    check_address(options["url"], HTTP)
    items = _listed(await client.page(urljoin(options["url"], "/agents/")))
    if items is None:
        items = [{"name": skill.id, "description": skill.description} for skill in (await client.card()).skills]
    for agent in items:
        if output.as_json:
            output.json(agent)
        else:
            output.line(f"{agent['name']}  {agent.get('description', '')}")
    return OK


def _listed(catalogue: Any) -> list[dict[str, Any]] | None:
    """Return the agents of a catalogue; None if it is that of another kind of server."""
    items = catalogue.get("agents") if isinstance(catalogue, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "name" in item for item in items):
        return None
    return items


async def card(client: Client, options: Options, output: Output) -> int:
    keys = _key_set(options["keys"]) if options["keys"] else None
    public = await client.found_card()
    if options["what"] == "show":
        text = orjson.dumps(public.wire, option=0 if output.as_json else orjson.OPT_INDENT_2)
        output.line(safe_json(text.decode()))
        return OK
    hosts = options["host"] or ([] if keys else [urlsplit(public.url).netloc])
    try:
        await client.verify_card(Trust(keys=keys, hosts=hosts))
    except errors.UntrustedCard as error:
        output.error(error)
        return FAILED
    output.line(f"The card of {public.card.name} has a valid signature.")
    return OK


def _key_set(path: str) -> Json:
    try:
        keys = orjson.loads(read_text(path))
    except orjson.JSONDecodeError:
        keys = None
    if not isinstance(keys, dict):
        raise WrongUsage(f"{path}: it is not a JWK Set, an object of JSON with the member `keys`")
    return keys


VERBS: dict[str, Verb] = {
    "send": Verb(help="send a message and print the answer", add_arguments=_send_arguments, run=send),
    "stream": Verb(
        help="send a message and print the answer as it grows", add_arguments=_message_arguments, run=stream
    ),
    "get": Verb(help="print a task", add_arguments=_task_arguments, run=get),
    "list": Verb(help="print your tasks, the newest first", add_arguments=_list_arguments, run=list_tasks),
    "cancel": Verb(help="end a task", add_arguments=_task_arguments, run=cancel),
    "tail": Verb(help="follow a task until it ends", add_arguments=_tail_arguments, run=tail),
    "agents": Verb(help="print the agents of a server", add_arguments=add_connection, run=agents),
    "card": Verb(help="print or verify the card of an agent", add_arguments=_card_arguments, run=card),
    "check": Verb(help="try an A2A server and report", add_arguments=_check_arguments, run=check),
}
