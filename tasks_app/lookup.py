"""Find rows by whatever id somebody has at hand. Exact ids on indexes only: these tables are long."""

from django.db.models import Q, QuerySet

from tasks_app.models import Exchange, Principal, Task

CANDIDATES = 500
"""The newest of each kind that are looked at: an rpc id such as 1 is used by everybody, all the time."""


def exchanges(text: str, among: QuerySet[Exchange] | None = None) -> QuerySet[Exchange]:
    """The exchanges with that exchange, request, rpc or task id, newest first."""
    rows = Exchange.objects.all() if among is None else among
    keys = _keys(text)
    found: set[str] = set()
    if keys:
        for field in ("id", "request_id", "rpc_id", "task_id"):
            # One indexed query each: with an OR over four indexes, databases like to read the whole table.
            # Empty request ids are not in their index, and a database must be told that they are not looked for.
            named = rows.exclude(request_id="") if field == "request_id" else rows
            hits = named.filter(**{f"{field}__in": keys}).order_by("-id").values_list("id", flat=True)
            found.update(hits[:CANDIDATES])
    return rows.filter(id__in=sorted(found, reverse=True)[:CANDIDATES]).order_by("-id")


def tasks(text: str, among: QuerySet[Task] | None = None) -> QuerySet[Task]:
    """The task of that id, or the tasks of that context, newest first."""
    rows = Task.objects.all() if among is None else among
    keys = _keys(text)
    if not keys:
        return rows.none()
    # The index on contexts begins with the owner: naming all owners makes it usable.
    in_context = Q(owner_id__in=Principal.objects.values("id"), context_id__in=keys)
    hits = rows.filter(in_context).order_by("-id").values_list("id", flat=True)[:CANDIDATES]
    return rows.filter(id__in={*keys, *hits}).order_by("-id")


def _keys(text: str) -> list[str]:
    """What was pasted: without the white space and the quotes around it, and with the quotes if it has any."""
    whole = text.strip()
    # No row holds U+0000 or half a character, and PostgreSQL refuses to look for them.
    if not whole or "\0" in whole or whole != whole.encode(errors="replace").decode():
        return []
    bare = whole.strip("\"'`").strip()
    return [whole] if bare in {"", whole} else [bare, whole]
