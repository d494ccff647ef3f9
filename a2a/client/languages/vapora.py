"""VAPORA on the client's side: 0.3 without the version header, and with numbers of errors of its own."""

from msgspec.structs import replace

from a2a import errors
from a2a.client.languages import v0_3
from a2a.client.refusals import Numbers
from a2a.dialects.vapora import LANGUAGE as OURS

NUMBERS = Numbers(
    codes={
        -32700: errors.ParseError.reason,
        -32600: errors.InvalidRequest.reason,
        -32601: errors.MethodNotFound.reason,
        -32602: errors.InvalidParams.reason,
        -32603: errors.Internal.reason,
    },
    statuses={404: errors.TaskNotFound.reason},
)
"""Servers of VAPORA itself send no reason, so the status 404 stands for an absent task."""
LANGUAGE = replace(v0_3.LANGUAGE, name=OURS.name, headers={}, numbers=NUMBERS)
