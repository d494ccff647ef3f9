"""The rows that an operator may see: those of their tenants and agents. Every page and every resource reads through it.

A model names its tenant by the class attribute `tenant_path`, a lookup such as "principal__tenant", and its agent by
`agent_path`. With an empty path its rows belong to no tenant, and every operator with the permission sees them. Without
the attribute only operators of all tenants do, so that a new table shows nothing by mistake.
"""

from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from msgspec import Struct

from tasks_app.models import OperatorReach, Tenant
from tasks_app.operators.roles import ADMINISTRATOR, AGENT_OWNER

M = TypeVar("M", bound=Model)


class Reach(Struct, frozen=True):
    """The tenants and the agents that an operator may see; None for all."""

    tenants: frozenset[int] | None = None
    agents: frozenset[str] | None = None

    @property
    def is_whole(self) -> bool:
        """True if the operator sees the rows of every tenant and agent."""
        return self.tenants is None and self.agents is None

    def limit(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Return those of the rows that the operator may see."""
        condition = self.condition(rows.model)
        return rows.none() if condition is None else rows.filter(condition)

    def condition(self, model: type[Model]) -> Q | None:
        """Return the condition of the rows of a table; None if the operator may see none of them."""
        tenant, agent = getattr(model, "tenant_path", None), getattr(model, "agent_path", None)
        if tenant == "" or self.is_whole:
            return Q()
        if tenant is None or (self.agents is not None and agent is None):
            return None
        condition = Q() if self.tenants is None else Q(**{f"{tenant}__in": sorted(self.tenants)})
        return condition if self.agents is None else condition & Q(**{f"{agent}__in": sorted(self.agents)})


EVERYTHING = Reach()
NOTHING = Reach(frozenset(), frozenset())


def reach_of(user: Any) -> Reach:
    """Return the reach of a user.

    A user without a row of OperatorReach sees nothing, except that superusers and administrators see everything. An
    agent owner sees only the agents that the row names, even if it names none.
    """
    if not user.is_active or not user.is_staff:
        return NOTHING
    if user.is_superuser:
        return EVERYTHING
    roles = set(user.groups.values_list("name", flat=True))
    row = OperatorReach.objects.filter(user_id=user.pk).first()
    if row is None:
        return EVERYTHING if ADMINISTRATOR in roles else NOTHING
    tenants = None if row.all_tenants else frozenset(row.tenants.values_list("pk", flat=True))
    agents = frozenset(row.agents.split())
    return Reach(tenants, agents if agents or AGENT_OWNER in roles else None)


def limit(user: Any, rows: QuerySet[M]) -> QuerySet[M]:
    """Return those of the rows that the user may see."""
    return read_reach(user).limit(rows)


def is_limited(user: Any, model: type[Model]) -> bool:
    """Return whether the user may not see every row of the table."""
    return read_reach(user).condition(model) != Q()


def read_reach(user: Any) -> Reach:
    """Return the reach of the user of a request, which is read once for each request."""
    reach: Reach | None = getattr(user, "_reach", None)
    if reach is None:
        reach = user._reach = reach_of(user)
    return reach


def explain_refusal(user: Any, tenant: str) -> str:
    """Return why an operator may make no rows of a tenant, where `may_write` is false."""
    reach = reach_of(user)
    if reach.agents and _has_tenant(reach, tenant):
        return "You see some agents alone, and this is about all of them: ask an operator who sees every agent"
    return f"The tenant {tenant} is not one of yours"


def may_write(user: Any, tenant: str) -> bool:
    """Return whether the user may make rows of a tenant: one of the reach, or any tenant if the reach has all.

    Such rows are about all agents, so an operator of some agents makes none.
    """
    reach = reach_of(user)
    return reach.agents is None and _has_tenant(reach, tenant)


def _has_tenant(reach: Reach, tenant: str) -> bool:
    return reach.tenants is None or Tenant.objects.filter(name=tenant, pk__in=reach.tenants).exists()
