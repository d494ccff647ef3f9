"""The language SPARC: A2A 0.2.9 with events that have names, errors with `data`, and methods of its own.

A call is in it by the pin of its key, or by a method that only it has. Other callers of A2A see no difference.
"""

from msgspec.structs import replace

from a2a.dialects import v0_2
from a2a.dialects.sparc import batches, faults, memory, sending, streams, webhooks, workflows
from a2a.dialects.sparc.faults import COLUMN

METHODS = (
    v0_2.DIALECT.methods | sending.METHODS | webhooks.METHODS | workflows.METHODS | batches.METHODS | memory.METHODS
)
"""The methods of A2A 0.2, and the tables of the methods that SPARC has in its own form or adds."""
DIALECT = replace(
    v0_2.DIALECT,
    name="sparc",
    methods=METHODS,
    column=COLUMN,
    encode_error=faults.encode_error,
    error_type=faults.Fault,
    call_id_member="requestId",
    answers_early=True,
    words=faults.words,
    encode_frame=streams.encode_frame,
    framing=streams.named_frame,
)
