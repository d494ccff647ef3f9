"""The client on the command line: one verb a function, and what they share. It needs no settings and no server here.

Results go to the output, progress to the error output. Exit codes:

0  done; a task has completed, or waits at the caller's wish
1  the task failed, was rejected or canceled; a check found a fault
2  the command line is wrong: an option, a file, the address, or the token
3  the server refused the call
4  the server was not reached, or its answer was not A2A
5  the task waits for an answer or for credentials

As usual, 130 means that Ctrl-C ended the command, and 141 that the reader of its output has left.
"""

import asyncio
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Awaitable, Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from msgspec import Struct

from a2a.client import REST, RPC, SOCKET, Client, ClientError, ServerError, Timeouts
from a2a.client.cards import VERSIONS
from a2a.client.console.output import Output
from a2a.client.errors import InvalidCall, Unauthenticated

OK, FAILED, USAGE, REFUSED, UNREACHED, WAITS = range(6)
STOPPED, UNREAD = 130, 141
"""The codes of a shell for the signals of Ctrl-C and of a closed pipe."""
TOKEN = "A2A_TOKEN"  # noqa: S105  # the name of a variable
"""The environment's variable with the bearer token."""
Options = dict[str, Any]


class Verb(Struct, frozen=True, kw_only=True):
    """A command of the client."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Client, Options, Output], Awaitable[int]]
    """Does the work, and returns the exit code. Raises ClientError."""


class WrongUsage(Exception):
    """A wrong command line. The message gives the reason."""


def number(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from the least on."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) >= least):
            raise ArgumentTypeError(f"must be a whole number from {least} on, not {text[:40]!r}")
        return int(text)

    return parse


def text(value: str) -> str:
    """Return the text of an option. Raises ArgumentTypeError if it is not UTF-8, or has U+0000."""
    # Python decodes bytes that are not UTF-8 to unpaired surrogates, which neither JSON nor a URL can hold.
    if "\0" in value or value != value.encode(errors="replace").decode():
        raise ArgumentTypeError(f"must be text in UTF-8 without U+0000, not {value[:40]!r}")
    return value


def seconds(text: str) -> float:
    """Return the seconds of an option."""
    with suppress(ValueError):
        value = float(text)
        if 0 < value <= 1e9:
            return value
    raise ArgumentTypeError(f"must be a number of seconds above 0, not {text[:40]!r}")


def add_connection(parser: ArgumentParser) -> None:
    """Add the address, and the options that every verb takes."""
    parser.add_argument("url", type=text, help="the address of the agent, or that of its card")
    parser.add_argument("--json", action="store_true", help="print JSON of A2A 1.0, a line for each result")
    parser.add_argument(
        "--token-file", type=text, metavar="FILE", help=f"a file with the bearer token, in place of ${TOKEN}"
    )
    parser.add_argument("--a2a-version", choices=VERSIONS, help="use this version only")
    parser.add_argument("--binding", choices=(RPC, REST, SOCKET), help="use this binding only")
    parser.add_argument("--timeout", type=seconds, default=30.0, metavar="SECONDS", help="for each call (30)")


def run(verb: Verb, options: Options, output: Output) -> int:
    """Perform a verb. Return the exit code, and print a sentence for each error."""
    try:
        try:
            return asyncio.run(_run(verb, options, output))
        except ClientError as error:
            output.error(error, _remedy(error, options))
            return _exit_code(error)
        except WrongUsage as error:
            output.wrong(str(error))
            return USAGE
    except KeyboardInterrupt:
        return STOPPED
    except BrokenPipeError:
        _drop_output()
        return UNREAD


def _exit_code(error: ClientError) -> int:
    if isinstance(error, InvalidCall):
        return USAGE
    return REFUSED if isinstance(error, ServerError) else UNREACHED


def _remedy(error: ClientError, options: Options) -> str:
    """Return what the user of a command can do, beyond the advice of the error."""
    if not isinstance(error, Unauthenticated) or options["token_file"]:
        return ""
    return (
        f"The token is that of ${TOKEN}" if os.environ.get(TOKEN) else f"Put a token into ${TOKEN}, or use --token-file"
    )


def _drop_output() -> None:
    """Lead the output nowhere: Python writes the rest of it when it ends, and would report the closed pipe."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_text(path: str) -> str:
    """Return the text of a file. Raises WrongUsage."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise WrongUsage(f"{path}: {error.strerror}") from None
    except ValueError:
        raise WrongUsage(f"{path}: it is not text in UTF-8") from None


async def _run(verb: Verb, options: Options, output: Output) -> int:
    token = os.environ.get(TOKEN, "").strip()
    if options["token_file"]:
        token = read_text(options["token_file"]).strip()
        if not token:
            raise WrongUsage(f"{options['token_file']}: there is no token in it")
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # An encoding without some letters shows a mark in their place.
            stream.reconfigure(errors="replace")
    return run(VERBS[options["verb"]], options, Output(sys.stdout, sys.stderr, as_json=options["json"]))
