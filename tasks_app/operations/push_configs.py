"""Webhooks of a task: register, read, list, remove (A2A 1.0, 3.1.7-3.1.10); and the one that comes with a message."""

import asyncio
import secrets
from base64 import b64encode
from datetime import datetime, timedelta
from math import ceil
from uuid import uuid4

from django.conf import settings
from django.core import signing
from django.db.models import Q

from a2a.answers import PushConfigPage
from a2a.dialects.webhooks import SIGNING_SCHEME
from a2a.errors import InvalidParams, RateLimited, TaskNotFound
from a2a.languages import push_of
from a2a.requests import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs
from a2a.types import PushConfig
from tasks_app import clock
from tasks_app.callers.access import sight
from tasks_app.callers.buckets import Buckets
from tasks_app.database.rows import WebhookRow
from tasks_app.database.work import Do, DoSlowly
from tasks_app.event_log import MOST, Full, Register, Remove, register, remove
from tasks_app.ids import uuid7
from tasks_app.models import PushConfig as Row
from tasks_app.models.states import WebhookState
from tasks_app.operations.operation import Await, Context, Done, Grant
from tasks_app.operations.tasks import find
from tasks_app.outbound import dialling as outbound
from tasks_app.sealing import Unreadable, seal, site_of, url_of

LOOKS = 0.2
"""Seconds between two looks at a try that is under way."""
LONGEST_TRY = timedelta(seconds=15)
"""How long a removal waits for it."""
_SALT = "webhooks"
registrations = Buckets(lambda: settings.A2A_OWNER_WEBHOOKS)
"""Registrations of each owner in this process."""


async def create(request: CreatePushConfig, context: Context) -> Grant:
    """The address is looked up now as it will be at each delivery: what must not be called is refused.

    What a task that has ended takes is undecided in A2A 1.0, 3.1.7: it takes webhooks, and they hear of its end.
    """
    head = await find(context, request.task_id, request.tenant)
    _count_registration(context.caller.owner_id)
    await check_address(request.config)
    row = webhook_row(request.config, head.task_id, clock.now(), context.caller.key_id)
    item = Register(row=row, sight=sight(context.caller, head.task_id))
    try:
        stored = await Do(lambda: register(item))
    except Full:
        raise InvalidParams(full(request.config)) from None
    if not stored:
        # It was forgotten since it was looked at.
        raise TaskNotFound(taskId=request.task_id)
    return _done(context, _shown(row, request.config, token=request.config.token))


def _count_registration(owner_id: int) -> None:
    """Raises RateLimited: a registration has a name looked up, and on a task that has ended something sent."""
    now = clock.now()
    if not registrations.use(owner_id, 1, now):
        seconds = ceil(registrations.wait(owner_id, now))
        raise RateLimited(seconds, limit="webhooks registered in a minute", most=str(settings.A2A_OWNER_WEBHOOKS))


async def check_address(config: PushConfig) -> None:
    """Raises InvalidParams for an address that must not be called."""
    try:
        await Await(lambda: outbound.check(config.url))
    except (outbound.Unknown, outbound.Inside):
        # Either is taken, and looked at again before it is dialled: a caller who registers name after name must not
        # find out which of them lead to machines inside.
        return
    except outbound.Blocked as error:
        raise InvalidParams((config.path, str(error))) from None


async def check_room(config: PushConfig, row: WebhookRow) -> None:
    """Raises InvalidParams for one webhook too many."""
    others = (
        Row.objects.filter(task_id=row.task_id).exclude(state=WebhookState.REMOVED).exclude(config_id=row.config_id)
    )
    if (await DoSlowly(others.count)) >= MOST:
        raise InvalidParams(full(config))


def full(config: PushConfig) -> tuple[str, str]:
    """The violation of a task that has as many webhooks as it may have."""
    field = config.path.removesuffix("url") + "id"
    return field, f"would be one webhook too many: a task has {MOST} at most; replace or delete one"


def webhook_row(config: PushConfig, task_id: str, now: datetime, key_id: int | None) -> WebhookRow:
    """Return the webhook as it is stored. Without an id of its own, a webhook of 0.x has its task's
    (docs/protocol.md#webhook-methods)."""
    signs = bool(config.schemes) and config.schemes[0].lower() == SIGNING_SCHEME
    secret = config.credentials if signs and config.credentials else new_secret()
    push, version = push_of(config.language)
    unnamed = task_id if push.default_id else str(uuid4())
    return WebhookRow(
        id=uuid7(), task_id=task_id, config_id=config.id or unnamed,
        version=version, language=config.language, url=site_of(config.url), address=seal(config.url), key_id=key_id,
        host=outbound.target(config.url).host[:255],
        schemes=" ".join(config.schemes), token=_sealed(config.token), secret=seal(secret), due_at=None,
        credentials="" if signs else _sealed(config.credentials), created_at=now, updated_at=now,
    )  # fmt: skip


def new_secret() -> str:
    """Make a secret in the form of Standard Webhooks."""
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()


def _sealed(text: str | None) -> str:
    return seal(text) if text else ""


async def get(request: GetPushConfig, context: Context) -> Grant:
    """A2A 1.0, 3.1.8. An unknown webhook is refused as an unknown task is (docs/protocol.md#webhook-methods)."""
    head = await find(context, request.task_id, request.tenant)
    found = await DoSlowly(lambda: _find(head.task_id, request))
    if found is None:
        raise TaskNotFound(taskId=request.task_id)
    return _done(context, _stored(found))


def _find(task_id: str, request: GetPushConfig) -> Row | None:
    """The webhook of that id; without one the task's default, or the oldest that there is."""
    mine = Row.objects.filter(task_id=task_id).exclude(state=WebhookState.REMOVED)
    # PostgreSQL refuses to look for U+0000.
    found = mine.filter(config_id=request.id).first() if request.id and "\0" not in request.id else None
    if found is None and (request.id is None or request.or_default):
        found = mine.filter(config_id=task_id).first() or mine.order_by("created_at", "id").first()
    return found


async def list_configs(request: ListPushConfigs, context: Context) -> Grant:
    """A2A 1.0, 3.1.9: oldest first."""
    head = await find(context, request.task_id, request.tenant)
    rows = Row.objects.filter(task_id=head.task_id).exclude(state=WebhookState.REMOVED).order_by("created_at", "id")
    if request.page_token:
        at, last_id = _place(request.page_token, head.task_id)
        rows = rows.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=last_id))
    found = await DoSlowly(lambda: list(rows[: request.page_size + 1]))
    shown = found[: request.page_size]
    token = ""
    if len(found) > len(shown):
        token = signing.dumps([head.task_id, shown[-1].created_at.isoformat(), shown[-1].pk], salt=_SALT)
    return _done(context, PushConfigPage(configs=tuple(map(_stored, shown)), next_page_token=token))


def _place(token: str, task_id: str) -> tuple[datetime, str]:
    """The last one that was shown. Raises InvalidParams for a token that is not of this list."""
    try:
        bound, at, last_id = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError):
        raise InvalidParams(("pageToken", "is not a token of this server; begin again without one")) from None
    if bound != task_id:
        raise InvalidParams(("pageToken", "belongs to the list of another task; begin again without it"))
    return datetime.fromisoformat(at), last_id


async def delete(request: DeletePushConfig, context: Context) -> Grant:
    """A2A 1.0, 3.1.10. It is answered when no try is under way any more: nothing arrives after that."""
    head = await find(context, request.task_id, request.tenant)
    if "\0" not in request.id:
        now, config_id = clock.now(), request.id
        named = Row.objects.filter(task_id=head.task_id, config_id=config_id).exclude(state=WebhookState.REMOVED)
        if request.or_default and not (await DoSlowly(named.exists)):
            config_id = head.task_id
        # Once: whoever registers it again while this waits has another webhook.
        tried = await Do(lambda: remove(Remove(task_id=head.task_id, config_id=config_id, now=now)))
        ends = now + LONGEST_TRY
        while tried is not None and clock.now() < ends and (await DoSlowly(tried.lasts)):
            await Await(lambda: asyncio.sleep(LOOKS))
    return _done(context, None)


def _done(context: Context, result: PushConfig | PushConfigPage | None) -> Done:
    """Answer, and store the answer without what is secret: the log cannot give it again."""
    context.exchange.keep_result(result)
    return Done(result)


def _stored(row: Row) -> PushConfig:
    """Return the webhook as its owner may read it: neither token nor credentials (docs/protocol.md#secrets)."""
    try:
        url = url_of(row)
    except Unreadable:
        url = row.url
    return PushConfig(
        id=row.config_id, task_id=row.task_id, url=url, schemes=tuple(row.schemes.split()), language=row.spoken
    )


def _shown(row: WebhookRow, config: PushConfig, token: str | None) -> PushConfig:
    return PushConfig(
        id=row.config_id,
        task_id=row.task_id,
        url=config.url,
        schemes=config.schemes,
        token=token,
        language=config.language,
    )
