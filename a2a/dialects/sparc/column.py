"""The errors of SPARC by their numbers."""

from a2a import errors
from a2a.dialects import v0_2
from a2a.language import Column

_OWN = (errors.MemoryNotFound, errors.WorkflowNotFound)
"""Errors whose reasons A2A lacks. The methods that have them are SPARC's own."""
COLUMN: Column = v0_2.DIALECT.column | {error: v0_2.DIALECT.column[error]._replace(reason="") for error in _OWN}
"""The numbers of A2A 0.2."""
