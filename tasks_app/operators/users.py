"""Verbs on the accounts of operators, each with its act. Accounts are disabled, never deleted.

Only a superuser, or a command, changes a superuser; and no verb makes one. So no role leads to more than it gives,
except one with the permission to change users or roles, which leads to every role.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from msgspec import Struct

from a2a.options import NAME, NAME_WORDS
from tasks_app import clock
from tasks_app.database.errors import constraint_of
from tasks_app.models import OperatorReach, Principal, Tenant, UserLink
from tasks_app.operators.approvals import end_approvals, end_lost_approvals
from tasks_app.operators.audit import COMMAND, Change, Operator, record_acts
from tasks_app.operators.reach import reach_of
from tasks_app.operators.refusals import ActRefused
from tasks_app.operators.second_factor import find_holders
from tasks_app.operators.texts import check_printable
from tasks_app.operators.tokens import revoke_all

DETAILS = ("email", "first_name", "last_name")
"""The columns of a user that give no right and have no act of their own."""
_NAMES = frozenset(
    {
        *("auth_user_username_key", "auth_user.username"),
        *("tasks_app_user_name", "index 'tasks_app_user_name'"),
        *("auth_group_name_key", "auth_group.name"),
    }
)
"""The constraints of the names of users and roles, as each database calls them."""


class UserRefused(ActRefused):
    """Raised for an act on a user that cannot be done. The sentence says why, and what to do."""


class NamedReach(Struct, frozen=True, kw_only=True):
    """The tenants and agents that an operator is to see, by their names."""

    tenants: Sequence[str] = ()
    all_tenants: bool = False
    agents: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """True if it names no tenant and no agent."""
        return not (self.tenants or self.all_tenants or self.agents)


def make_user(by: Operator, name: str, roles: Collection[str], reach: NamedReach, email: str = "") -> tuple[User, str]:
    """Make an operator with a random password. Return the user and the password. Raises UserRefused.

    An empty reach is not stored, so that the roles decide: an administrator without a reach sees everything.
    """
    name = User.normalize_username(name)  # A letter may become several, so the length is checked after it.
    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        raise UserRefused(f"An operator cannot be called {name[:150]!r}: {error.messages[0]}", "username") from None
    if other := find_namesake(name):
        raise UserRefused(f"There is a user {other.username} already: choose another name.", "username")
    password = secrets.token_urlsafe(15)
    with transaction.atomic():
        try:
            with transaction.atomic():
                user = User.objects.create_user(name, email=email, password=password, is_staff=True)
        except IntegrityError as error:
            # A look beforehand would miss another operator who makes the user at the same time.
            if not is_of_namesake(error):
                raise
            raise UserRefused(f"There is a user {name} already: choose another name.", "username") from None
        _write_roles(user, roles)
        after = {"email": user.email, "roles": roles_of(user)}
        after |= describe_reach(user) if reach.is_empty else _write_reach(user, reach)
        record_acts(by, "make", Change(user, {}, after))
    return user, password


def is_of_namesake(error: IntegrityError) -> bool:
    """Return whether an error says that there is a user, or a role, of the name already."""
    return constraint_of(error) in _NAMES


def find_namesake(name: str) -> User | None:
    """Return the user whose name is this one in whatever letters, capital or small.

    The form of the admin refuses such a name as well. Wrong logins are counted for both names together.
    """
    return User.objects.filter(username__iexact=User.normalize_username(name)).first()


def find_user(name: str) -> User:
    """Return the user of a name. Raises UserRefused."""
    user = User.objects.filter(username=name).first() if "\0" not in name else None
    if user is None:
        raise UserRefused(f"There is no user {name[:150]!r}: `manage.py a2a users list` prints all.")
    return user


def link_user(by: Operator, user: User, principal: str, tenant: str, scopes: str) -> UserLink:
    """Let a user call in the name of a principal, from pages of this server. Raises UserRefused."""
    owner = Principal.objects.select_related("tenant").filter(tenant__name=tenant, name=principal).first()
    if owner is None:
        sentence = f"There is no principal {principal} of the tenant {tenant}: `a2a keys create` makes one."
        raise UserRefused(sentence, "principal")
    with transaction.atomic():
        links = UserLink.objects.select_for_update(of=("self",)).select_related("principal__tenant")
        former = links.filter(user=user).first()
        if former and former.principal.tenant_id != owner.tenant_id:
            # Each tenant gets an act of its own: its operators see that, and nothing of the other tenant.
            record_acts(by, "unlink", Change(former, _describe_link(former), {}))
            former = None
        link, _ = UserLink.objects.update_or_create(
            user=user, defaults={"principal": owner, "scopes": scopes, "created_at": clock.now()}
        )
        record_acts(by, "link", Change(link, _describe_link(former) if former else {}, _describe_link(link)))
    return link


def unlink_user(by: Operator, user: User) -> None:
    """End the link of a user, who then calls in the name of no principal. Raises UserRefused."""
    with transaction.atomic():
        links = UserLink.objects.select_for_update(of=("self",)).select_related("user", "principal__tenant")
        link = links.filter(user=user).first()
        if link is None:
            raise UserRefused(f"The user {user.username} is not linked to a principal.")
        record_acts(by, "unlink", Change(link, _describe_link(link), {}))
        link.delete()


def describe_link_of(user: User) -> dict[str, Any] | None:
    """Return the principal in whose name a user calls, as acme/olga, with the scopes; None without a link."""
    link = UserLink.objects.select_related("principal__tenant").filter(user=user).first()
    return _describe_link(link) if link else None


def _describe_link(link: UserLink) -> dict[str, Any]:
    return {"principal": f"{link.principal.tenant.name}/{link.principal.name}", "scopes": link.scopes}


@contextmanager
def keeping_a_giver(by: Operator) -> Iterator[None]:
    """Act in one transaction on who may do what. Raises UserRefused if then no operator could give roles any more.

    A superuser and a command may do it, because they can undo it.
    """
    with transaction.atomic():
        # Two operators who take the right from each other at once would both still see the other one. SQLite has one
        # writer anyway.
        list(User.objects.select_for_update(no_key=True).filter(is_staff=True).order_by("pk").values_list("pk"))
        had = _has_giver()
        yield
        if not had or by.door == COMMAND or _has_giver():
            return
        if not User.objects.filter(username=by.name, is_superuser=True).exists():
            raise UserRefused(
                "Then no operator could give roles any more: make another one an administrator of all tenants first, "
                "or use `manage.py a2a users`."
            )


def _has_giver() -> bool:
    """Return whether an active operator may give roles: one who may change users, and sees every tenant and agent."""
    users = User.objects.with_perm("auth.change_user", backend="django.contrib.auth.backends.ModelBackend")
    return any(reach_of(user).is_whole for user in users.filter(is_staff=True))


def set_active(by: Operator, user: User, is_active: bool) -> bool:
    """Enable an operator, or disable one, who is logged out at once and whose tokens are revoked.

    Return False if there is nothing to change. Raises UserRefused.
    """
    with keeping_a_giver(by):
        # Another operator may have changed it since it was read: saving that would undo their act without a record.
        locked = User.objects.select_for_update(no_key=True)
        user.refresh_from_db(fields=["is_active", "is_staff"], from_queryset=locked)
        before = {"is_active": user.is_active, "is_staff": user.is_staff}
        user.is_active, user.is_staff = is_active, user.is_staff or is_active
        user.save(update_fields=["is_active", "is_staff"])
        after: dict[str, Any] = {"is_active": user.is_active, "is_staff": user.is_staff}
        count = 0 if is_active else end_access(user)
        if before == after and not count:
            return False
        if not is_active:
            after["tokens"] = count
        record_acts(by, "enable" if is_active else "disable", Change(user, before, after))
    return True


def set_details(by: Operator, user: User, details: Mapping[str, str]) -> None:
    """Set the email address or the names of a user, by their columns. Raises UserRefused."""
    for name, value in details.items():
        try:
            check_printable(value)
            column: Any = User._meta.get_field(name)
            column.clean(value, user)
        except ValidationError as error:
            raise UserRefused(f"The value {value[:150]!r} is refused: {error.messages[0]}", name) from None
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True)
        user.refresh_from_db(fields=list(details), from_queryset=locked)
        before = {name: getattr(user, name) for name in details}
        for name, value in details.items():
            setattr(user, name, value)
        user.save(update_fields=list(details))
        record_acts(by, "details", Change(user, before, dict(details)))


def set_roles(by: Operator, user: User, roles: Collection[str]) -> None:
    """Give an operator these roles in place of those from before. Raises UserRefused."""
    with keeping_a_giver(by):
        before = roles_of(user)
        _write_roles(user, roles)
        end_lost_approvals(user)
        record_acts(by, "role", Change(user, {"roles": before}, {"roles": roles_of(user)}))


def set_reach(by: Operator, user: User, reach: NamedReach) -> None:
    """Let an operator see these tenants and agents in place of those from before. Raises UserRefused."""
    if user.is_superuser:
        raise UserRefused(f"{user.username} is a superuser, who sees every tenant and agent: a reach changes nothing.")
    with keeping_a_giver(by):
        before = describe_reach(user)
        record_acts(by, "reach", Change(user, before, _write_reach(user, reach)))


def reset_password(by: Operator, user: User) -> str:
    """Give an operator a random password, and end their sessions and all other access. Return the password."""
    password = secrets.token_urlsafe(15)
    validate_password(password, user)
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        record_password(by, user)
    return password


def record_password(by: Operator, user: User) -> None:
    """End the access of an operator who has a new password, as end_access() does, and record the act."""
    with transaction.atomic():
        record_acts(by, "password", Change(user, {}, {"tokens": end_access(user)}))


def roles_of(user: User) -> list[str]:
    """Return the roles of an operator, which are the names of groups: ours, and those that were made here."""
    return sorted(user.groups.values_list("name", flat=True))


def describe_reach(user: User) -> dict[str, Any]:
    """Return what an operator may see: the row of their reach, or nulls for an operator without one."""
    return _describe_reach(OperatorReach.objects.filter(pk=user.pk).first())


def _describe_reach(row: OperatorReach | None) -> dict[str, Any]:
    if row is None:
        return {"all_tenants": None, "tenants": None, "agents": None}
    tenants = sorted(tenant.name for tenant in row.tenants.all())
    return {"all_tenants": row.all_tenants, "tenants": tenants, "agents": row.agents.split()}


def _write_roles(user: User, roles: Collection[str]) -> None:
    # Locked, because PostgreSQL would notice only at the end of the transaction that another operator removes one.
    groups = {group.name: group for group in Group.objects.select_for_update(no_key=True).order_by("pk")}
    if unknown := sorted(set(roles) - groups.keys()):
        raise UserRefused(f"There is no role {unknown[0][:150]!r}: the roles are {', '.join(groups)}.", "roles")
    user.groups.set([groups[name] for name in roles])


def check_reach(reach: NamedReach) -> None:
    """Check that a reach does not contradict itself, and names agents as they can be called. Raises UserRefused.

    Agents only narrow the tenants of a reach. A reach that names agents alone would take every tenant away.
    """
    if reach.all_tenants and reach.tenants:
        raise UserRefused("An operator sees all tenants or those that you name: give one of the two.", "all_tenants")
    if wrong := [name for name in reach.agents if not NAME.fullmatch(name)]:
        sentence = f"An agent cannot be called {wrong[0]!r}: give names of {NAME_WORDS}, one at a time."
        raise UserRefused(sentence, "agents")
    if reach.agents and not (reach.all_tenants or reach.tenants):
        sentence = "Agents without a tenant show an operator nothing: name their tenants too, or give all tenants."
        raise UserRefused(sentence, "agents")


def _write_reach(user: User, reach: NamedReach) -> dict[str, Any]:
    check_reach(reach)
    tenants = list(Tenant.objects.filter(name__in=reach.tenants))
    if missing := sorted(set(reach.tenants) - {tenant.name for tenant in tenants}):
        sentence = f"There is no tenant {missing[0]!r}: the first key of a principal makes its tenant."
        raise UserRefused(sentence, "tenants")
    agents = " ".join(dict.fromkeys(reach.agents))
    values = {"all_tenants": reach.all_tenants, "agents": agents}
    row, _ = OperatorReach.objects.update_or_create(user=user, defaults=values)
    row.tenants.set(tenants)
    return describe_reach(user)


def end_access(user: User) -> int:
    """Revoke the tokens of a user who has lost the access to the admin, or has a new password; return their number.

    The codes and tokens of OAuth clients that the user has approved are deleted: the user may get the access back, and
    a stranger who knew the former password may have given the approval.
    """
    end_approvals(user)
    return revoke_all(user)


def describe_user(user: User) -> dict[str, Any]:
    """Return the columns of an operator that other operators may see."""
    return describe_users([user])[0]


def describe_users(users: Iterable[User]) -> list[dict[str, Any]]:
    """Return the columns of operators that other operators may see, in as many queries as for one operator."""
    by_id = {user.pk: user for user in users}
    columns = ("id", "username", *DETAILS, "is_active", "is_staff", "is_superuser", "last_login")
    roles: dict[int, list[str]] = {id: [] for id in by_id}
    named = User.groups.through._default_manager.filter(user__in=by_id)
    for id, name in named.values_list("user_id", "group__name"):
        roles[id].append(name)
    devices = find_holders(by_id)
    links = UserLink.objects.select_related("principal__tenant").in_bulk(by_id)
    reaches = OperatorReach.objects.prefetch_related("tenants").in_bulk(by_id)
    return [
        {name: getattr(user, name) for name in columns}
        | {
            "roles": sorted(roles[id]),
            "second_factor": id in devices,
            "link": _describe_link(links[id]) if id in links else None,
        }
        | _describe_reach(reaches.get(id))
        for id, user in by_id.items()
    ]
