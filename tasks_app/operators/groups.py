"""Verbs on roles, each with its act. A deployment makes its own beside those of roles.py: all are groups of Django."""

import re
import unicodedata
from collections.abc import Collection
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from tasks_app.operators.approvals import end_lost_approvals
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.roles import ROLES
from tasks_app.operators.texts import check_printable
from tasks_app.operators.users import UserRefused, is_of_namesake, keeping_a_giver

_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that are printable and cannot be seen."""


def make_role(by: Operator, name: str, permissions: Collection[str]) -> Group:
    """Make a role with these permissions. Raises UserRefused."""
    check_name(name)
    rows = find_permissions(permissions)
    with transaction.atomic():
        try:
            with transaction.atomic():
                group = Group.objects.create(name=name)
        except IntegrityError as error:
            if not is_of_namesake(error):
                raise
            raise UserRefused(f"There is a role {name!r} already: choose another name.", "name") from None
        group.permissions.set(rows)
        record_acts(by, "make", Change(group, {}, describe_role(group)))
    return group


def rename_role(by: Operator, group: Group, name: str) -> None:
    """Give a role another name; operators who have it keep it. Raises UserRefused."""
    check_name(name, group)
    if group.name in ROLES:
        raise UserRefused(f"The role {group.name!r} keeps its name: `migrate` would make it again.")
    with transaction.atomic():
        _lock(group)
        before, group.name = group.name, name
        try:
            with transaction.atomic():
                group.save(update_fields=["name"])
        except IntegrityError as error:
            if not is_of_namesake(error):
                raise
            # Another operator has made a role of the name since it was checked.
            raise UserRefused(f"There is a role {name!r} already: choose another name.", "name") from None
        record_acts(by, "rename", Change(group, {"name": before}, {"name": name}))


def check_name(name: str, group: Group | None = None) -> None:
    """Check that a role can have a name: a new one, or this group. Raises UserRefused.

    Only by its look can an operator tell a role from another. So letter case, the width of letters, the number of
    spaces, which pages show as one, and unseen characters make no difference, and no space stands around a name: JSON
    and forms drop it.
    """
    try:
        check_printable(name)
        Group._meta.get_field("name").clean(name, None)
        if name != name.strip():
            raise ValidationError("must not begin or end with a space")
        if not _fold(name):
            raise ValidationError("must have characters that can be seen")
    except ValidationError as error:
        raise UserRefused(f"A role cannot be called {name[:150]!r}: {error.messages[0]}", "name") from None
    others = Group.objects.exclude(pk=group.pk) if group else Group.objects.all()
    for other in others.values_list("name", flat=True):
        if _fold(other) == _fold(name):
            raise UserRefused(f"There is a role {other!r} already: choose another name.", "name")


def _fold(name: str) -> str:
    look = unicodedata.normalize("NFKC", _UNSEEN.sub("", name))
    return " ".join(look.casefold().split())


def change_role(by: Operator, group: Group, permissions: Collection[str]) -> None:
    """Give a role these permissions in place of those from before. Raises UserRefused."""
    rows = find_permissions(permissions)
    with keeping_a_giver(by):
        _lock(group)
        before = names_of(group.permissions)
        group.permissions.set(rows)
        end_lost_approvals(*group.user_set.all())
        record_acts(by, "change", Change(group, {"permissions": before}, {"permissions": names_of(group.permissions)}))


def remove_role(by: Operator, group: Group) -> None:
    """Remove a role, which operators that have it then lack. Raises UserRefused."""
    if group.name in ROLES:
        raise UserRefused(f"The role {group.name!r} stays: `migrate` would make it again.")
    with keeping_a_giver(by):
        _lock(group)
        members = list(group.user_set.all())
        record_acts(by, "delete", Change(group, describe_role(group), {}))
        group.delete()
        end_lost_approvals(*members)


def find_role(name: str) -> Group:
    """Return the role of a name. Raises UserRefused."""
    group = Group.objects.filter(name=name).first() if "\0" not in name else None
    if group is None:
        raise UserRefused(f"There is no role {name[:150]!r}: `manage.py a2a roles list` prints all.")
    return group


def find_permissions(names: Collection[str]) -> list[Permission]:
    """Return the permissions of these names, such as tasks_app.view_task. Raises UserRefused."""
    rows = Permission.objects.select_related("content_type").order_by("pk")
    by_name = {f"{row.content_type.app_label}.{row.codename}": row for row in rows}
    if unknown := sorted(set(names) - by_name.keys()):
        sentence = f"There is no permission {unknown[0][:150]!r}: a name is such as tasks_app.view_task."
        raise UserRefused(f"{sentence} `manage.py a2a roles list` shows those of each role.", "permissions")
    return [by_name[name] for name in names]


def names_of(permissions: Any) -> list[str]:
    """Return permissions by their names, such as tasks_app.view_task."""
    return sorted(f"{app}.{name}" for app, name in permissions.values_list("content_type__app_label", "codename"))


def describe_role(group: Group) -> dict[str, Any]:
    """Return a role as operators see it."""
    return {"id": group.pk, "name": group.name, "permissions": names_of(group.permissions)}


def _lock(group: Group) -> None:
    """Lock the row, and read its name again: another operator may have renamed it since it was read."""
    row = Group.objects.select_for_update().filter(pk=group.pk).first()
    if row is None:
        raise UserRefused(f"There is no role {group.name!r} any more: it was removed meanwhile.")
    group.name = row.name
