"""JSON-RPC at a path that names the operation, so that the method of a call is one of the params of the operation."""

from msgspec import UNSET
from msgspec.structs import replace

from a2a.envelopes import AnyMember, BadMember, Envelope, jsonrpc
from a2a.envelopes.jsonrpc import ENVELOPE
from a2a.errors import InvalidRequest


def for_operation(name: str, operation: str) -> Envelope:
    """Return the envelope of a path whose calls are all of one operation. It takes no batch."""

    def parse(body: bytes) -> AnyMember:
        member = jsonrpc.parse(body)
        if isinstance(member, list):
            raise InvalidRequest(detail="the body must be one call, not a batch")
        if isinstance(member, BadMember):
            return member
        params = {} if member.params is UNSET else member.params
        return replace(member, method=operation, params={"method": member.method, "params": params})

    return replace(ENVELOPE, name=name, parse=parse)


def with_bare_results(envelope: Envelope) -> Envelope:
    """Return the envelope for streams of bare text: only errors are in JSON-RPC."""
    return replace(envelope, head=lambda rpc_id: b"", tail=b"")
