"""Commands of `manage.py`, run in this process: the JSON lines they print, their errors and exit codes."""

from io import StringIO
from typing import Any, NamedTuple

import orjson
from django.core.management import CommandError, call_command


class Printed(NamedTuple):
    """Output of a command."""

    lines: list[dict[str, Any]]
    errors: str
    code: int


def run(*words: str) -> Printed:
    """Run a command, whether it fails or not."""
    out, errors, code = StringIO(), StringIO(), 0
    try:
        call_command(*words, stdout=out, stderr=errors)
    except CommandError as error:
        errors.write(str(error))
        code = error.returncode
    return Printed([orjson.loads(line) for line in out.getvalue().splitlines()], errors.getvalue(), code)


def printed(*words: str) -> list[dict[str, Any]]:
    """Run a command and return the lines it prints. Its failure is an exception."""
    return [orjson.loads(line) for line in text_of(*words).splitlines()]


def text_of(*words: str) -> str:
    """Run a command and return what it prints."""
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()
