"""The installed command `taskdesk`: the client's verbs, which need no settings, and the service's commands."""

import sys

from a2a.client import console
from a2a.client.console.verbs import VERBS


def main() -> None:
    """Run the command line, and end with its exit code."""
    arguments = sys.argv[1:]
    if is_for_the_client(arguments):
        sys.exit(console.main(arguments))
    try:
        from config.manage import main as manage
    except ModuleNotFoundError as error:
        if arguments[:1] in (["-h"], ["--help"], []):
            sys.exit(console.main(["--help"]))
        sys.exit(
            f"The service is not installed here ({error.name} is missing): pip install 'taskdesk[server]'. "
            f"Without it there are {', '.join(VERBS)}."
        )
    manage()


def is_for_the_client(arguments: list[str]) -> bool:
    """Return whether a command line is one of the client. Django has a `check` too, which takes no address."""
    verb = arguments[0] if arguments else ""
    return verb in VERBS and (verb != "check" or any("://" in one for one in arguments) or "-h" in arguments)
