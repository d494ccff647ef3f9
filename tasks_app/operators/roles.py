"""The roles of operators: groups of Django with the permissions of their work. `migrate` makes the groups.

A role says what an operator may do; the reach (reach.py) with the rows of which tenants and agents.
"""

from collections.abc import Iterable
from typing import Any

VIEWER, OPERATOR, AGENT_OWNER, AUDITOR, ADMINISTRATOR = "viewer", "operator", "agent owner", "auditor", "administrator"

_WORK = frozenset(
    {
        *("task", "exchange", "webhook", "receiver", "delivery", "process", "relay"),
        *("sharedstream", "slackquestion", "slackworkspace", "slackuser"),
        *("workflow", "batch", "memoryentry", "usage"),
        *("tenant", "principal", "apikey", "oauthclient", "serviceaccount", "budget", "permission", "ratelimit"),
    }
)
"""The tables of work and of callers."""
_OF_AGENTS = frozenset({"task", "webhook", "delivery", "batch"})
"""The tables whose rows belong to an agent."""
_RECORDS = frozenset({"act", "auditentry", "refusedcalls", "refusals", "wronglogins", "operatortoken", "operatorreach"})
"""The tables that tell who did what."""
_ALL_OF_AUTH = frozenset(
    {"auth.delete_group"}
    | {f"auth.{verb}_{model}" for model in ("user", "group") for verb in ("add", "change", "view")}
)


def _may(verb: str, models: Iterable[str]) -> frozenset[str]:
    return frozenset(f"tasks_app.{verb}_{model}" for model in models)


ROLES: dict[str, frozenset[str]] = {
    VIEWER: _may("view", _WORK),
    OPERATOR: _may("view", _WORK)
    | _may("change", {"task", "webhook", "receiver", "delivery", "process", "sharedstream", "slackquestion"})
    | _may("change", {"workflow", "batch", "memoryentry"}),
    AGENT_OWNER: _may("view", _OF_AGENTS) | _may("change", _OF_AGENTS),
    AUDITOR: _may("view", _WORK | _RECORDS) | {"auth.view_user", "auth.view_group"},
    ADMINISTRATOR: _ALL_OF_AUTH,
}
"""The permissions of each role. An administrator has besides these every permission of tasks_app."""


def set_permissions(apps: Any) -> None:
    """Make the groups of the roles, and give each its permissions, as far as they exist yet. `migrate` calls this.

    It takes no permission away. Deployments that need other roles make groups of their own.
    """
    try:
        groups, permissions = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
        apps.get_model("tasks_app", "OperatorReach")
    except LookupError:  # a migration to before there were roles, whose groups may have their names
        return
    groups.objects.bulk_create([groups(name=name) for name in ROLES], ignore_conflicts=True)
    ids = dict(groups.objects.filter(name__in=ROLES).values_list("name", "pk"))
    rows = permissions.objects.values_list("pk", "content_type__app_label", "codename")
    gifts = [(ids[role], pk) for pk, app, codename in rows for role in ROLES if _may_role(role, app, codename)]
    through = groups.permissions.through
    through.objects.bulk_create(
        [through(group_id=group, permission_id=permission) for group, permission in gifts], ignore_conflicts=True
    )


def _may_role(role: str, app: str, codename: str) -> bool:
    """Return whether a role has a permission."""
    return f"{app}.{codename}" in ROLES[role] or (role == ADMINISTRATOR and app == "tasks_app")
