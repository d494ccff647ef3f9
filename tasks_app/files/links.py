"""Links to files: signed, for a while, and good for their bearer."""

from functools import partial

from django.conf import settings
from django.core import signing

from a2a.files import id_of, linked
from tasks_app import clock

_SALT = "tasks_app.files"


def with_links(payload: bytes, base: str) -> bytes:
    """JSON for a caller who may see the task: its files are links, which hold for a while."""
    return linked(payload, partial(_link, signing.Signer(salt=_SALT), base, _until()))


def link_to(url: str) -> str:
    """Return a link to one reference, within this server, for operators."""
    return _link(signing.Signer(salt=_SALT), "", _until(), id_of(url), url.rpartition("/")[2])


def _until() -> int:
    """When a link of now ends. Rounded, so that answers within a while are the same bytes."""
    step = max(1, int(settings.A2A_FILE_URL_SECONDS / 2))
    return (int(clock.now().timestamp()) // step + 2) * step


def _link(signer: signing.Signer, base: str, until: int, file_id: str, name: str) -> str:
    return f"{base}/files/{file_id}/{name}?until={until}&signature={signer.signature(f'{file_id}.{until}')}"


def problem_of(file_id: str, until: str, signature: str) -> str:
    """Why a link does not hold, in a sentence; empty if it does."""
    try:
        signing.Signer(salt=_SALT).unsign(f"{file_id}.{until}:{signature}")
    except signing.BadSignature:
        return "this link was not made by this server: take it from an answer, unchanged"
    return "" if int(until) > clock.now().timestamp() else "this link has expired: get the task again for a new one"
