"""The making and the rotation of API keys by operators, with their acts.

webhooks/keys.py revokes keys, because that ends webhooks too.
"""

from datetime import timedelta
from typing import Any

import orjson
from django.db import transaction
from django.db.models import QuerySet

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import Act, ApiKey, Webhook
from tasks_app.models.states import WebhookState
from tasks_app.operators.audit import Change, Operator, kind_of, record_acts

LEAST_DAYS = 1 / (24 * 60)
"""The shortest life of a key: a minute. A shorter one would end before the key can be used."""
MOST_DAYS = 36_500
MOST_OVERLAP = 24 * 90
"""The longest overlap of two keys, in hours."""
ROTATE = "rotate"
"""The verb of the acts of rotations."""
MOST_NAMED = 20
"""Keys of one name that an error lists."""


def make_key(
    by: Operator,
    principal: str,
    *,
    tenant: str = "default",
    name: str = "",
    scopes: str = "*",
    language: str | None = None,
    days: float | None = None,
    networks: str = "",
) -> tuple[ApiKey, str]:
    """Make a key and record the act. Return its row and the key, which cannot be read again. Raises ValueError."""
    if days is not None and not LEAST_DAYS <= days < MOST_DAYS:
        raise WrongValue("days", f"days must be at least a minute ({LEAST_DAYS:.4f}) and less than {MOST_DAYS:,}")
    if (principal, name) == (access.DEVELOPER, access.DEVELOPMENT):
        raise WrongValue(
            "name",
            f"`manage.py run` creates keys of {access.DEVELOPER} named {access.DEVELOPMENT}: choose another name",
        )
    with transaction.atomic():  # no key is created without its act
        key = access.new_key(
            principal,
            tenant=tenant,
            name=name,
            scopes=scopes,
            language=language,
            networks=networks,
            expires_at=None if days is None else clock.now() + timedelta(days=days),
        )
        row = _row_of(key)
        record_acts(by, "make", Change(row, {}, _describe(row)))
    return row, key


def rotate_key(by: Operator, old: ApiKey, overlap_hours: float = 24) -> tuple[ApiKey, str]:
    """Make a key with the rights of another, which expires after the overlap, and record both acts.

    Webhooks that were registered with the old key belong to the new one. It lives as long as the old one was to live.
    Return its row and the key, which cannot be read again. Raises ValueError.
    """
    if not 0 <= overlap_hours <= MOST_OVERLAP:
        raise ValueError(f"the overlap must be at least 0 and at most {MOST_OVERLAP:,} hours")
    with transaction.atomic():
        now = clock.now()
        old = ApiKey.objects.select_related("principal__tenant").select_for_update(of=("self",)).get(pk=old.pk)
        if old.revoked_at or (old.expires_at and old.expires_at <= now):
            raise ValueError("the key has ended already: make another one")
        _check_not_replaced(old)
        key = access.new_key(
            old.principal.name,
            tenant=old.principal.tenant.name,
            name=old.name,
            scopes=old.scopes,
            language=old.language,
            networks=old.networks,
            expires_at=old.expires_at and now + (old.expires_at - old.created_at),
        )
        row, before = _row_of(key), {"expires_at": old.expires_at}
        end = now + timedelta(hours=overlap_hours)
        old.expires_at = min(old.expires_at or end, end)
        old.save(update_fields=["expires_at"])
        webhooks = Webhook.objects.filter(key=old, state=WebhookState.ACTIVE)
        count = webhooks.update(key=row, caller_credential=f"key:{row.pk}")
        record_acts(by, "make", Change(row, {}, _describe(row) | {"replaces": old.pk, "webhooks": count}))
        record_acts(by, ROTATE, Change(old, before, {"expires_at": old.expires_at, "replaced_by": row.pk}))
    return row, key


def _check_not_replaced(old: ApiKey) -> None:
    """Check that the key was not rotated before. Raises ValueError.

    Its expiry is then the end of an overlap, and says nothing about the life of a new key. The act of the rotation
    tells, because nothing deletes acts.
    """
    if (new := _find_replacement(old)) is not None:
        is_valid = _valid_keys().filter(pk=new).exists()
        advice = ": rotate that one" if is_valid else ", which has ended: make another key"
        raise ValueError(f"key {old.pk} is being replaced by key {new} already{advice}")


def _find_replacement(old: ApiKey) -> int | None:
    """Return the id of the key that replaces this one after the overlap of a rotation; None for any other key."""
    act = Act.objects.filter(kind=kind_of(old), object_id=str(old.pk), verb=ROTATE).order_by("-id").first()
    return None if act is None or old.expires_at is None else int(orjson.loads(act.after)["replaced_by"])


def find_key(text: str) -> ApiKey:
    """Return the key with a name or an id. Raises ValueError for none, and for several keys of one name."""
    keys = _valid_keys().select_related("principal__tenant")
    rows = list(keys.filter(name=text).order_by("pk")[:MOST_NAMED])
    if not rows and text.isascii() and text.isdigit() and len(text) < 10:
        rows = list(keys.filter(pk=int(text)))
    if not rows:
        raise ValueError(f"no valid key has the name or the id {text!r}; `manage.py a2a keys list` prints both")
    if len(rows) > 1:
        ids = "; ".join(map(_show_id, rows))
        raise ValueError(f"several keys have the name {text!r}: name one by its id ({ids})")
    return rows[0]


def _valid_keys() -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(revoked_at=None).exclude(expires_at__lte=clock.now())


def _show_id(row: ApiKey) -> str:
    """Return the id of a key, and of the one that replaces it: a name is that of both until the overlap ends."""
    new = _find_replacement(row)
    return f"{row.pk}" if new is None else f"{row.pk}, which key {new} replaces at {row.expires_at:%Y-%m-%d %H:%M} UTC"


def _row_of(key: str) -> ApiKey:
    return ApiKey.objects.select_related("principal__tenant").get(digest=access.digests(key)[0])


def _describe(row: ApiKey) -> dict[str, Any]:
    return {
        "principal": row.principal.name,
        "tenant": row.principal.tenant.name,
        "scopes": row.scopes,
        "expires_at": row.expires_at,
        "language": row.language,
        "networks": row.networks,
    }
