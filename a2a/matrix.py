"""The matrix of errors: every error of a2a/errors.py in every language. A column is data of its language."""

from a2a.dialects import adr, errors_1_0, v0_2, v0_3, v1_0, vapora, zone
from a2a.dialects.acp.faults import COLUMN as ACP
from a2a.dialects.sparc.faults import COLUMN as SPARC
from a2a.language import Column

MATRIX: dict[str, Column] = {
    v1_0.DIALECT.name: errors_1_0.COLUMN,
    v0_3.DIALECT.name: v0_3.DIALECT.column,
    v0_2.DIALECT.name: v0_2.DIALECT.column,
    "sparc": SPARC,
    "acp": ACP,
    "adr": adr.COLUMN,
    "vapora": vapora.COLUMN,
    "zone": zone.COLUMN,
}
"""The columns by the names of their languages."""
