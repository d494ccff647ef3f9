"""The language ACP, and its row on the endpoint of JSON-RPC."""

import re

from a2a.choice import Row, by_method
from a2a.dialects.acp import faults, following, notifications, streams, tasks
from a2a.dialects.acp.card import encode_card
from a2a.language import Language

LANGUAGE = Language(
    name="acp",
    methods=tasks.METHODS | following.METHODS | notifications.METHODS | streams.METHODS,
    column=faults.COLUMN,
    encode_error=faults.encode_error,
    error_type=faults.Fault,
    encode_frame=following.encode_first,
    encode_notification=following.encode_notification,
    encode_chunk=streams.encode_chunk,
    spelling="acp",
    is_closed=True,
    needs_tls=True,
    answers_early=True,
    dates_errors=True,
    encode_card=encode_card,
    push=following.PUSH,
)
ROW = Row(languages=(LANGUAGE,), choose=by_method, spelling=re.compile(r"[^/]*\.[^/]*"))
"""The row of methods that are spelled with a dot."""
