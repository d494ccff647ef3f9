"""The operations on the memory: store, retrieve, list, delete and search the entries of the caller."""

from functools import partial

from a2a.errors import Error, InvalidParams, MemoryNotFound
from a2a.memory import (
    DeleteMemory,
    ListMemory,
    MemoryDeletion,
    MemoryDocument,
    RetrieveMemory,
    SearchMemory,
    StoreMemory,
)
from tasks_app.callers.access import check_tenant
from tasks_app.callers.permissions import check_permission
from tasks_app.database.work import Do, DoSlowly
from tasks_app.limits.quotas import quota
from tasks_app.memory.checks import check_request
from tasks_app.memory.entries import delete, holder_for, store
from tasks_app.memory.reading import ReadMemory, list_entries, search
from tasks_app.operations.operation import Context, Done, Grant


def _check(request: StoreMemory | RetrieveMemory | DeleteMemory | ListMemory | SearchMemory, context: Context) -> None:
    """Check the names of a request, and that the caller may use its namespace. Raises PermissionDenied."""
    check_tenant(context.caller, request.tenant)
    check_request(request)
    if request.namespace is not None:
        check_permission(context.caller, "namespace", request.namespace)


async def store_entry(request: StoreMemory, context: Context) -> Grant:
    """Store a value. Raises QuotaReached."""
    _check(request, context)
    quota.check(context.caller.owner_id)
    entry = context.exchange.entry()
    return await _change(Do(partial(store, holder_for(context.caller), request, entry)), context)


async def delete_entry(request: DeleteMemory, context: Context) -> Grant:
    """Delete an entry."""
    _check(request, context)
    entry = context.exchange.entry()
    return await _change(Do(partial(delete, holder_for(context.caller), request, entry)), context)


async def _change(item: Do[MemoryDocument] | Do[MemoryDeletion], context: Context) -> Grant:
    """Do a write with its entry of the audit. A refusal has an entry of its own, which is stored with the call."""
    try:
        return Done(await item)
    except Error:
        context.exchange.undo()
        raise


async def retrieve(request: RetrieveMemory, context: Context) -> Grant:
    """Return an entry with its data."""
    _check(request, context)
    entry = await ReadMemory(owner_id=context.caller.owner_id, namespace=request.namespace, key=request.key)
    if entry is None:
        raise MemoryNotFound(namespace=request.namespace, key=request.key)
    return Done(entry)


async def list_memory(request: ListMemory, context: Context) -> Grant:
    """Return a page of entries. A caller with rules about namespaces names one."""
    _check(request, context)
    caller = context.caller
    if request.namespace is None and any(rule.kind == "namespace" for rule in caller.rules):
        raise InvalidParams(("namespace", "is required: the permissions of the caller are for single namespaces"))
    return Done(await DoSlowly(partial(list_entries, caller.owner_id, request), caller.owner_id))


async def search_memory(request: SearchMemory, context: Context) -> Grant:
    """Return a page of the entries that meet the conditions."""
    _check(request, context)
    owner = context.caller.owner_id
    return Done(await DoSlowly(partial(search, owner, request), owner))
