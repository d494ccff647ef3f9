"""Every error in every language: the matrix against a copy that is written out here."""

from itertools import product

import pytest

from a2a import errors
from a2a.errors import Error
from a2a.language import Cell, Language
from a2a.languages import ALL, NEUTRAL
from a2a.matrix import MATRIX
from tests.protocol.speaking import BY_VERSION

COLUMNS = ("a2a-1.0", "a2a-0.3", "a2a-0.2", "sparc", "acp", "adr", "vapora", "zone")
TABLE = """
ParseError                -32700      -32700      -32700      -32700      -32700      -32700/400  -32700/400  -32700
InvalidRequest            -32600      -32600      -32600      -32600      -32600      -32600/400  -32600/400  -32600
MethodNotFound            -32601      -32601      -32601      -32601      -32601      -32601/400  -32601/400  -32601
InvalidParams             -32602      -32602      -32602      -32602      -32602      -32602/400  -32602/400  -32602
Internal                  -32603      -32603      -32603      -32603      -32603      -32603/500  -32603/500  -32603
TaskNotFound              -32001      -32001      -32001      -32001      -40001      -38001/404  -32000/404  -38001
TaskNotCancelable         -32002      -32002      -32002      -32002      -40002      -38002/409  -32000/409  -38002
PushNotSupported          -32003      -32003      -32003      -32003      -38003      -38003/400  -32000/400  -38003
UnsupportedOperation      -32004      -32004      -32004      -32004      -38004      -38004/409  -32000/409  -38004
TaskEnded                 -32004      -32004      -32004      -32004      -40002      -38004/409  -32000/409  -38004
ContentTypeNotSupported   -32005      -32005      -32005      -32005      -32602      -32602/400  -32602/400  -32602
InvalidAgentResponse      -32006      -32006      -32006      -32006      -32603      -32603/500  -32603/500  -32603
ExtendedCardNotConfigured -32007      -32007      -32007      -32007      -38004      -38004/409  -32000/400  -38004
ExtensionSupportRequired  -32008      -32600      -32600      -32600      -32600      -32600/400  -32600/400  -32600
VersionNotSupported       -32009      -32009      -32009      -32009      -32600      -32600/400  -32600/400  -32600
SharedStreamNotFound      -32001      -32001      -32001      -32001      -40003      -38001/404  -32000/400  -38001
SharedStreamClosed        -32004      -32004      -32004      -32004      -40004      -38004/409  -32000/409  -38001
MemoryNotFound            -32001      -32001      -32001      -32001      -40001      -38001/404  -32000/400  -38001
WorkflowNotFound          -32001      -32001      -32001      -32001      -40001      -38001/404  -32000/400  -38001
PhaseRefused              -33001      -33001      -33001      -33001      -38004      -38004/409  -32000/409  -38004
UnknownAgent              -38005      -38005      -38005      -38005      -40005      -32000/404  -32000/400  -38005
BudgetExceeded            -38006      -38006      -38006      -38006      -38006      -32001/402  -32000/402  -38006
Timeout                   -38007      -38007      -38007      -38007      -38007      -32002/408  -32000/504  -32001
RateLimited               -38008/429  -38008/429  -38008/429  -38008/429  -38008/429  -32003/429  -32000/429  -38008/429
Unauthenticated           -38009/401  -38009/401  -38009/401  -38009/401  -40007/401  -38009/401  -32000/401  -38009/401
ExpiredKey                -38009/401  -38009/401  -38009/401  -38009/401  -40009/401  -38009/401  -32000/401  -38009/401
MissingScope              -38010/403  -38010/403  -38010/403  -38010/403  -40008/403  -38010/403  -32000/403  -38010/403
PermissionDenied          -38011/403  -38011/403  -38011/403  -38011/403  -40006/403  -38011/403  -32000/403  -38011/403
IdempotencyConflict       -32602      -32602      -32602      -32602      -38012/409  -38012/409  -32000/409  -38012/409
Unavailable               -38013/503  -38013/503  -38013/503  -38013/503  -38013/503  -32000/503  -32000/503  -38013/503
"""
"""The number of each error in each language, and behind a slash its HTTP status where that is not 200."""
CELLS = {
    (name, language): cell
    for name, *cells in (line.split() for line in TABLE.strip().splitlines())
    for language, cell in zip(COLUMNS, cells, strict=True)
}
ADR_REASONS = {
    "AGENT_UNAVAILABLE": ("UnknownAgent", "Unavailable"),
    "BUDGET_EXCEEDED": ("BudgetExceeded",),
    "TIMEOUT": ("Timeout",),
    "RATE_LIMITED": ("RateLimited",),
    "VALIDATION_ERROR": ("ParseError", "InvalidRequest", "MethodNotFound", "InvalidParams", "ContentTypeNotSupported"),
}
"""The reasons that ADR-002 defines, with errors that have them."""


def text(cell: Cell) -> str:
    return f"{cell.number}/{cell.status}" if cell.status != 200 else str(cell.number)


def test_the_matrix_has_a_row_for_each_error_and_a_column_for_each_language() -> None:
    assert tuple(MATRIX) == COLUMNS
    assert {name for name, _ in CELLS} == {error.__name__ for error in errors.ALL}


@pytest.mark.requirement("ACP-10", "ADR-10", "VAPORA-03", "VAPORA-04")
@pytest.mark.parametrize(("error", "language"), list(product(errors.ALL, COLUMNS)))
def test_each_cell_is_as_it_is_written_here(error: type[Error], language: str) -> None:
    assert text(MATRIX[language][error]) == CELLS[error.__name__, language]


@pytest.mark.parametrize("language", [*ALL.by_name.values(), NEUTRAL], ids=lambda language: language.name)
def test_a_language_has_a_cell_for_each_error_and_no_other(language: Language) -> None:
    assert set(language.column) == set(errors.ALL)


@pytest.mark.parametrize("language", [*ALL.by_name.values(), NEUTRAL], ids=lambda language: language.name)
def test_only_a_language_with_a_number_for_it_tells_that_a_key_has_expired(language: Language) -> None:
    expired, invalid = errors.ExpiredKey(), errors.InvalidKey()
    is_finer = language.code(expired) != language.code(invalid)
    assert is_finer == (language.name == "acp")
    assert (language.error(expired) != language.error(invalid)) == is_finer


@pytest.mark.parametrize("name", COLUMNS)
def test_a_language_that_is_spoken_has_its_column_of_the_matrix(name: str) -> None:
    assert name not in ALL.by_name or ALL.by_name[name].column is MATRIX[name]


@pytest.mark.requirement("ADR-10")
@pytest.mark.parametrize(("reason", "names"), ADR_REASONS.items(), ids=list(ADR_REASONS))
def test_adr_002_has_reasons_of_its_own(reason: str, names: tuple[str, ...]) -> None:
    for name in names:
        kind = getattr(errors, name)
        assert (MATRIX["adr"][kind].reason or kind.reason) == reason


def test_reasons_name_a_row_and_twins_have_none() -> None:
    assert len({error.reason for error in errors.ALL}) == len(errors.ALL)
    twins = {errors.InvalidKey: errors.Unauthenticated, errors.InvalidTicket: errors.Unauthenticated}
    for twin, row in (
        twins
        | {errors.TooManyCalls: errors.RateLimited, errors.ChunkConflict: errors.IdempotencyConflict}
        | {errors.RequestConflict: errors.IdempotencyConflict, errors.NotOverTls: errors.InvalidRequest}
    ).items():
        assert (twin.row, twin.reason, twin in errors.ALL) == (row, row.reason, False)


def test_a_class_is_a_row_or_says_that_it_is_a_twin() -> None:
    with pytest.raises(TypeError, match="Gone needs a reason of its own and cells in the matrix, or else twin=True"):
        type("Gone", (errors.TaskNotFound,), {})
    with pytest.raises(TypeError, match="Odd needs a reason of its own"):

        class Odd(errors.TaskNotFound, twin=True):
            reason = "ODD"


def test_a_twin_has_the_cells_of_its_row() -> None:
    class Gone(errors.TaskNotFound, twin=True):
        pass

    assert BY_VERSION["1.0"].error(Gone())["code"] == -32001


def test_an_error_without_a_cell_says_where_to_add_it() -> None:
    class Odd(errors.TaskNotFound):
        reason = "ODD"

    with pytest.raises(LookupError, match=r"Odd has no cell in a2a-1\.0: add it to the table"):
        BY_VERSION["1.0"].error(Odd())
