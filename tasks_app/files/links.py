"""Signed links to files. A link is valid for a while, and for every client that has it."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.core import signing

from a2a.documents import Encoded, Pieces
from a2a.files import id_of, insert_links
from tasks_app import clock
from tasks_app.off_loop import rest

_SALT = "tasks_app.files"


Payload = TypeVar("Payload", bytes, Encoded)


def with_links(payload: Payload, base: str) -> Payload:
    """Return JSON for a caller who may see the task: references to files become links."""
    link = partial(_link, signing.Signer(salt=_SALT), base, _until())
    if isinstance(payload, Pieces):
        return Pieces(_with_rests(insert_links(part, link) for part in payload.parts))
    return insert_links(payload, link)


def _with_rests(parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield part
        rest()


def link_to(url: str) -> str:
    """Return a link for one reference, relative to this server, for operators."""
    return _link(signing.Signer(salt=_SALT), "", _until(), id_of(url), url.rpartition("/")[2])


def _until() -> int:
    """Return the time at which a link made now expires. It is rounded, so that answers soon after each other are the
    same bytes."""
    step = max(1, int(settings.A2A_FILE_URL_SECONDS / 2))
    return (int(clock.now().timestamp()) // step + 2) * step


def _link(signer: signing.Signer, base: str, until: int, file_id: str, name: str) -> str:
    return f"{base}/files/{file_id}/{name}?until={until}&signature={signer.signature(f'{file_id}.{until}')}"


def find_problem(file_id: str, until: str, signature: str) -> str:
    """Return a sentence that says why a link is not valid; empty if it is."""
    try:
        signing.Signer(salt=_SALT).unsign(f"{file_id}.{until}:{signature}")
    except signing.BadSignature:
        return "this link was not made by this server: take it from an answer, unchanged"
    return "" if int(until) > clock.now().timestamp() else "this link has expired: get the task again for a new one"
