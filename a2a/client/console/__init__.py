"""The client on the command line: one verb a function, and what they share. It needs no settings and no server here.

Results go to the output, progress to the error output. Exit codes:

0  done; a task has completed, or waits at the caller's wish
1  the task failed, was rejected or canceled; a check found a fault
2  the command line is wrong
3  the server refused the call
4  the server was not reached, or its answer was not A2A
5  the task waits for an answer or for credentials
"""

import asyncio
import os
import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from a2a.client import REST, RPC, SOCKET, Client, ClientError, ServerError, Timeouts
from a2a.client.cards import VERSIONS
from a2a.client.console.output import Output

OK, FAILED, USAGE, REFUSED, UNREACHED, WAITS = range(6)
TOKEN = "A2A_TOKEN"  # noqa: S105  # the name of a variable
"""The environment's variable with the bearer token."""
Options = dict[str, Any]


class Verb(Struct, frozen=True, kw_only=True):
    """A command of the client."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Client, Options, Output], Awaitable[int]]
    """Does the work, and returns the exit code. Raises ClientError."""


def add_connection(parser: ArgumentParser) -> None:
    """Add the address, and the options that every verb takes."""
    parser.add_argument("url", help="the address of the agent, or that of its card")
    parser.add_argument("--json", action="store_true", help="print JSON of A2A 1.0, a line for each result")
    parser.add_argument("--token-file", metavar="FILE", help=f"a file with the bearer token, in place of ${TOKEN}")
    parser.add_argument("--a2a-version", choices=VERSIONS, help="use this version only")
    parser.add_argument("--binding", choices=(RPC, REST, SOCKET), help="use this binding only")
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="for each call (30)")


def run(verb: Verb, options: Options, output: Output) -> int:
    """Perform a verb. Return the exit code, and print a sentence for each error."""
    try:
        return asyncio.run(_run(verb, options, output))
    except ServerError as error:
        output.error(error)
        return REFUSED
    except ClientError as error:
        output.error(error)
        return UNREACHED
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        output.note(f"{error.filename}: {error.strerror}")
        return USAGE


async def _run(verb: Verb, options: Options, output: Output) -> int:
    token = os.environ.get(TOKEN, "").strip()
    if options["token_file"]:
        with open(options["token_file"], encoding="utf-8") as file:  # noqa: ASYNC230, PTH123  # before anything else runs
            token = file.read().strip()
    version, binding = options["a2a_version"], options["binding"]
    async with Client(
        options["url"],
        token=token or None,
        versions=(version,) if version else VERSIONS,
        bindings=(binding,) if binding else (),
        timeouts=Timeouts(request=options["timeout"]),
    ) as client:
        return await verb.run(client, options, output)


def main(arguments: list[str]) -> int:
    """Perform a command line of the client. Return the exit code."""
    from a2a.client.console.verbs import VERBS

    parser = ArgumentParser(prog="taskdesk", description="Call A2A agents.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, verb in VERBS.items():
        verb.add_arguments(verbs.add_parser(name, help=verb.help, description=verb.help))
    options = vars(parser.parse_args(arguments))
    return run(VERBS[options["verb"]], options, Output(sys.stdout, sys.stderr, as_json=options["json"]))
