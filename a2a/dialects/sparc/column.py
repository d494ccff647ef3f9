"""The errors of SPARC by their numbers."""

from a2a.dialects import v0_2
from a2a.language import Column

COLUMN: Column = v0_2.DIALECT.column
"""The numbers of A2A 0.2."""
