"""`manage.py a2a send`, `stream`, `get` and so on: the client's verbs (a2a/client/console) as nouns."""

import sys
from typing import Any

from a2a.client import console
from a2a.client.console import Verb
from a2a.client.console.output import Output
from a2a.client.console.verbs import VERBS
from tasks_app.management.nouns import Noun, Printer


def _noun(verb: Verb) -> Noun:
    def handle(printer: Printer, options: dict[str, Any]) -> None:
        code = console.run(verb, options, Output(sys.stdout, sys.stderr, as_json=options["json"]))
        if code:
            raise SystemExit(code)

    return Noun(help=verb.help, add_arguments=verb.add_arguments, handle=handle, needs_database=False)


CALLS: dict[str, Noun] = {name: _noun(verb) for name, verb in VERBS.items()}
