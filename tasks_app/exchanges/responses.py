"""The recorded answer of a call: stored bytes, or an answer that is derived from the log again."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from a2a import languages
from a2a.answers import Answer
from a2a.documents import EventDocument
from a2a.envelopes import Envelope, Id, Member
from a2a.errors import InvalidParams, InvalidRequest, ParseError
from a2a.language import Language
from a2a.notices import EVERYTHING, with_notice
from a2a.requests import GetTask, Request
from tasks_app.event_log import ReadAsOf, read_as_of, stored_event
from tasks_app.exchanges.exchange import BARE
from tasks_app.exchanges.redaction import redact
from tasks_app.models import Event, Exchange, ExchangeBody


def response_text(exchange: Exchange) -> str:
    """Return the answer: the stored bytes, or a task as of a sequence number or the frames of a stream, which are
    derived from the log. The text is empty if neither is there."""
    body = ExchangeBody.objects.filter(pk=exchange.pk).first()
    if body is None:
        return ""
    if body.response:
        return body.response
    language, envelope = languages.ALL.by_name.get(exchange.dialect), envelope_of(exchange)
    if language is None or envelope is None:
        return ""
    if exchange.task_id is None or exchange.last_seq is None or exchange.code is not None:
        return ""
    wrap, request = _read_request(exchange, body.request, language, envelope)
    notices = getattr(request, "notices", None)
    length = getattr(request, "history_length", None)
    context_id = exchange.context_id or ""
    if exchange.outcome == "result":
        task = read_as_of(ReadAsOf(task_id=exchange.task_id, context_id=context_id, seq=exchange.last_seq))
        method = language.methods.get(exchange.method)
        if task is None or method is None:
            return ""
        if isinstance(request, GetTask) and not request.include_artifacts:
            task = replace(task, artifacts=None)
        return redact(wrap(bytes(method.encode(Answer(task=task, history_length=length)))))
    if exchange.outcome == "stream" and exchange.first_seq is not None:
        first = read_as_of(ReadAsOf(task_id=exchange.task_id, context_id=context_id, seq=exchange.first_seq))
        rows = Event.objects.filter(task_id=exchange.task_id, seq__gt=exchange.first_seq, seq__lte=exchange.last_seq)
        later = [
            stored_event(exchange.task_id, context_id, *row)
            for row in rows.order_by("seq").values_list("seq", "kind", "payload", "state", "created_at")
        ]
        start = [wrap(frame)] if first and (frame := language.encode_frame(first, length)) else []
        return "\n".join(map(redact, [*start, *_frames(language, later, wrap, length, notices)]))
    return ""


def _frames(
    language: Language,
    events: Sequence[EventDocument],
    wrap: Callable[[bytes], bytes],
    length: int | None,
    notices: int | None,
) -> Iterator[bytes]:
    """Yield the frames of events as a stream with this filter has sent them."""
    if language.encode_notification is None:
        frames = (language.encode_frame(event, length) for event in events)
        yield from (wrap(frame) for frame in frames if frame)
        return
    for event in events:
        if passed := with_notice(event, EVERYTHING if notices is None else notices):
            yield language.encode_notification(passed)


def _drop_webhook(params: Any) -> Any:
    """Drop the webhook from recorded params. Its redacted fields would be refused, and the answer does not depend on
    it."""
    if not isinstance(params, dict) or not isinstance(configuration := params.get("configuration"), dict):
        return params
    others = {name: value for name, value in configuration.items() if "push" not in name.lower()}
    return params | {"configuration": others}


def envelope_of(exchange: Exchange) -> Envelope | None:
    """Return the envelope of a call. Rows of an earlier version name no envelope; theirs follows from the door."""
    name = exchange.envelope or ("bare" if exchange.door == BARE else "jsonrpc")
    return languages.ALL.envelopes.get(name)


def _read_request(
    exchange: Exchange, text: str, language: Language, envelope: Envelope
) -> tuple[Callable[[bytes], bytes], Request | None]:
    """Return the function that wraps an answer as the door did, and the recorded request.

    For a text that cannot be read the id is null and there is no request.
    """
    rpc_id: Id = None
    request: Request | None = None
    try:
        if isinstance(member := envelope.parse(text.encode()), Member):
            rpc_id = None if member.id is UNSET else member.id
            method = language.methods[member.method or exchange.method]
            if exchange.outcome == "stream" and method.as_stream:
                method = method.as_stream
            request = method.decode(_drop_webhook(member.params))
    except (InvalidRequest, ParseError, InvalidParams, KeyError):
        pass
    return partial(envelope.reply, rpc_id), request
