"""The page of errors, generated from their classes and from the matrix of their cells."""

from a2a.dialects.errors_1_0 import REST_STATUSES
from a2a.errors import ALL, Error
from a2a.language import Cell
from a2a.matrix import MATRIX
from tasks_app.management.reference.markdown import code, page, sentence, table

INTRODUCTION = """
An error has a reason, and in each language a cell: a number, the HTTP status of a single call where that is not 200,
and a reason of the language's own if it has one. HTTP itself refuses some calls with 405, 408, 413 or 415 instead. Over
REST an error of A2A has the status and the gRPC name of the column REST. How errors look on the wire:
[clients](../clients.md#errors).
"""
A2A = "a2a-"


def make() -> str:
    """Return the page."""
    meanings = table(("Reason", "When"), [(code(error.reason), sentence(error.__doc__)) for error in _ordered()])
    header = ("Reason", *(name.replace(A2A, "A2A ") for name in _different()), "REST")
    rows = [(code(error.reason), *_cells(error), _status(error)) for error in _ordered()]
    return page("Errors", INTRODUCTION, "## Reasons", meanings, "## The matrix", table(header, rows))


def _ordered() -> list[type[Error]]:
    """Return all errors: first the errors of JSON-RPC, then those of A2A, then our own."""
    newest = {error: cell.number for error, cell in next(iter(MATRIX.values())).items()}
    return sorted(ALL, key=lambda error: (newest[error] > -32600, -newest[error] // 1000, -newest[error]))


def _different() -> list[str]:
    """Return the names of the languages, without those whose column is that of the language before."""
    names = list(MATRIX)
    return [name for place, name in enumerate(names) if not place or MATRIX[name] != MATRIX[names[place - 1]]]


def _cells(error: type[Error]) -> list[str]:
    return [_text(MATRIX[name][error]) for name in _different()]


def _text(cell: Cell) -> str:
    status = f", {cell.status}" if cell.status != 200 else ""
    return f"{cell.number}{status}{f' {code(cell.reason)}' if cell.reason else ''}"


def _status(error: type[Error]) -> str:
    number, name = REST_STATUSES[error]
    return f"{number} {code(name)}"
