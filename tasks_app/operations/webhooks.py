"""The operations on the webhooks of a task: register, read, list and remove (A2A 1.0, 3.1.7 to 3.1.10)."""

import asyncio
from datetime import timedelta
from math import ceil

from django.conf import settings

from a2a.answers import PushConfigPage
from a2a.errors import ABSENT_WEBHOOK, InvalidParams, RateLimited, TaskNotFound
from a2a.languages import push_of
from a2a.requests import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs
from a2a.types import PushConfig
from tasks_app import clock
from tasks_app.callers.access import sight
from tasks_app.database.keyset import Keyset, Position, fetch_page
from tasks_app.database.rows import WebhookRow
from tasks_app.database.work import Do, DoOwed, DoSlowly
from tasks_app.event_log import Full, Register, Remove, register, remove
from tasks_app.limits.buckets import DebtBuckets
from tasks_app.models import Webhook
from tasks_app.models.states import WebhookState
from tasks_app.operations.operation import Await, Context, Done, Grant
from tasks_app.operations.registration import check_address, too_many, webhook_row
from tasks_app.operations.tasks import find
from tasks_app.sealing import Unreadable, has_same_url, url_of

POLL_SECONDS = 0.2
"""Seconds between two looks at a try under way."""
LONGEST_TRY = timedelta(seconds=15)
"""The time for which a removal waits for a try under way."""
OLDEST_FIRST = Keyset(
    time="created_at",
    newest_first=False,
    salt="tasks_app.webhooks",
    mismatch="belongs to the list of another task; begin again without it",
)
"""The order of the webhooks of a task: by the time of their registration, then by id."""
registrations = DebtBuckets(lambda: settings.A2A_OWNER_WEBHOOKS)
"""Registrations of each owner in this process."""


async def create(request: CreatePushConfig, context: Context) -> Grant:
    """Register a webhook (A2A 1.0, 3.1.7). Its address is checked now, as at each delivery.

    The specification leaves open whether a task that has ended takes webhooks. Here it does, and they hear of its end.
    """
    head = await find(context, request.task_id, request.tenant)
    _count_registration(context.caller.owner_id)
    await check_address(request.config)
    row = webhook_row(request.config, head.task_id, clock.now(), context.caller)
    if request.config.id is None and push_of(request.config.language)[0].one_for_address:
        row.name = (await DoSlowly(lambda: _find_name(row), context.caller.owner_id)) or row.name
    entry = context.exchange.entry(row.name)
    item = Register(row=row, sight=sight(context.caller, head.task_id), entry=entry)
    try:
        is_registered = await Do(lambda: register(item))
    except Full:
        context.exchange.undo()
        raise InvalidParams(too_many(request.config)) from None
    if not is_registered:
        # The task was deleted since `find`.
        context.exchange.undo()
        raise TaskNotFound(taskId=request.task_id)
    answer = PushConfig(
        id=row.name,
        task_id=row.task_id,
        url=request.config.url,
        schemes=request.config.schemes,
        token=request.config.token,
        language=request.config.language,
        notices=row.notices,
        created_at=row.created_at,
    )
    return _answer(context, answer)


def _find_name(row: WebhookRow) -> str | None:
    """Return the name of the task's webhook in the same language with the same address; None if it has none."""
    rows = Webhook.objects.filter(task_id=row.task_id, host=row.host, version=row.version, language=row.language)
    rows = rows.exclude(state=WebhookState.REMOVED).order_by("created_at", "id")
    return next((other.name for other in rows if has_same_url(other, row)), None)


def _count_registration(owner_id: int) -> None:
    """Count a registration of the owner. Raises RateLimited for too many in a minute.

    Each one looks up a name, and on a task that has ended it sends a body.
    """
    now = clock.now()
    if not registrations.use(owner_id, 1, now):
        seconds = ceil(registrations.wait(owner_id, now))
        raise RateLimited(seconds, limit="webhooks registered in a minute", most=str(settings.A2A_OWNER_WEBHOOKS))


async def get(request: GetPushConfig, context: Context) -> Grant:
    """Return one webhook (A2A 1.0, 3.1.8). An unknown one is refused as an unknown task is
    (docs/protocol.md#webhook-methods)."""
    head = await find(context, request.task_id, request.tenant)
    row = await DoSlowly(lambda: _find(head.task_id, request), context.caller.owner_id)
    if row is None:
        detail = (
            "the task exists, and has no webhook with this id" if request.id else "the task exists, and has no webhook"
        )
        raise TaskNotFound(taskId=request.task_id, detail=detail, **{ABSENT_WEBHOOK: request.id or ""})
    return _answer(context, _config_of(row))


def _find(task_id: str, request: GetPushConfig) -> Webhook | None:
    """Return the webhook with the id of the request.

    If the request has no id, or a default stands in for an unknown one, return the task's default webhook, or else its
    oldest one.
    """
    rows = Webhook.objects.filter(task_id=task_id).exclude(state=WebhookState.REMOVED)
    # PostgreSQL raises an error for a text with U+0000.
    row = rows.filter(name=request.id).first() if request.id and "\0" not in request.id else None
    if row is None and (request.id is None or request.or_default):
        row = rows.filter(name=task_id).first() or rows.order_by("created_at", "id").first()
    return row


async def list_configs(request: ListPushConfigs, context: Context) -> Grant:
    """Return a page of the webhooks of a task, oldest first (A2A 1.0, 3.1.9)."""
    head = await find(context, request.task_id, request.tenant)
    rows = Webhook.objects.filter(task_id=head.task_id).exclude(state=WebhookState.REMOVED).order_by("created_at", "id")
    if request.page_token:
        rows = rows.filter(OLDEST_FIRST.after(OLDEST_FIRST.decode(request.page_token, head.task_id)))
    page_and_more = await DoSlowly(lambda: fetch_page(rows, request.page_size), context.caller.owner_id)
    page, more = page_and_more
    last = Position(page[-1].created_at, page[-1].pk) if more else None
    token = OLDEST_FIRST.encode(last, head.task_id) if last else ""
    return _answer(context, PushConfigPage(configs=tuple(map(_config_of, page)), next_page_token=token))


async def delete(request: DeletePushConfig, context: Context) -> Grant:
    """Remove a webhook (A2A 1.0, 3.1.10). Its address hears nothing after the answer: a try under way is waited for."""
    head = await find(context, request.task_id, request.tenant)
    if "\0" not in request.id:
        now, name = clock.now(), request.id
        rows = Webhook.objects.filter(task_id=head.task_id, name=name).exclude(state=WebhookState.REMOVED)
        if request.or_default and not (await DoSlowly(rows.exists, context.caller.owner_id)):
            name = head.task_id
        # Remove once, outside of the loop: a caller who registers the id again meanwhile has another webhook.
        entry = context.exchange.entry(name)
        attempt = await Do(lambda: remove(Remove(task_id=head.task_id, name=name, now=now, entry=entry)))
        end = now + LONGEST_TRY
        while attempt is not None and clock.now() < end and (await DoOwed(attempt.lasts, context.caller.owner_id)):
            await Await(lambda: asyncio.sleep(POLL_SECONDS))
    return _answer(context, None)


def _answer(context: Context, result: PushConfig | PushConfigPage | None) -> Done:
    """Return the answer, and record it without its secrets, because the event log cannot supply it again."""
    context.exchange.keep_result(result)
    return Done(result)


def _config_of(row: Webhook) -> PushConfig:
    """Return the webhook as its owner may read it: without token and credentials (docs/protocol.md#secrets)."""
    try:
        url = url_of(row)
    except Unreadable:
        url = row.url
    return PushConfig(
        id=row.name,
        task_id=row.task_id,
        url=url,
        schemes=tuple(row.schemes.split()),
        language=row.language_name,
        notices=row.notices,
        created_at=row.created_at,
    )
