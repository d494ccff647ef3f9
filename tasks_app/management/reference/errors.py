"""The page of errors, generated from their classes and from the tables of codes and statuses."""

from a2a.dialects.errors_1_0 import REST_STATUSES
from a2a.errors import ALL, Error
from a2a.languages import DIALECTS
from tasks_app.management.reference.markdown import code, page, sentence, table

INTRODUCTION = """
An error has a reason, and a code in each version; a code in parentheses is that of the version where it differs. Over
JSON-RPC an error is HTTP 200, but for 401, 403, 405, 408, 413, 415, 429 and 503; over REST it has the status of the
table. How errors look on the wire: [clients](../clients.md#errors).
"""


def make() -> str:
    """Return the page."""
    rows = [(_codes(error), error.reason, sentence(error.__doc__), _status(error)) for error in _ordered()]
    return page("Errors", INTRODUCTION, table(("Code", "Reason", "When", "REST"), rows))


def _ordered() -> list[type[Error]]:
    """Return all errors: first the errors of JSON-RPC, then those of A2A, then our own."""
    newest = DIALECTS[0].codes
    return sorted(ALL, key=lambda error: (newest[error] > -32600, -newest[error] // 1000, -newest[error]))


def _codes(error: type[Error]) -> str:
    newest, *others = DIALECTS
    different = {older.codes[error]: older.version for older in others if older.codes[error] != newest.codes[error]}
    return str(newest.codes[error]) + "".join(f" ({version}: {number})" for number, version in different.items())


def _status(error: type[Error]) -> str:
    number, name = REST_STATUSES[error]
    return f"{number} {code(name)}"
