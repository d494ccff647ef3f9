"""The holders of permissions, budgets and rate limits: a principal, or a tenant for all of its principals."""

from tasks_app.callers.wrong_values import WrongValue
from tasks_app.models import Principal, Tenant


class NoSuchHolder(WrongValue):
    """Raised for a name that no tenant or principal has. The sentence says which, and what makes one."""


def find_holder(tenant: str, principal: str | None) -> Principal | Tenant:
    """Return a principal by its name, or the tenant without one. Raises NoSuchHolder."""
    home = Tenant.objects.filter(name=tenant).first()
    if home is None:
        raise NoSuchHolder("tenant", f"there is no tenant {tenant!r}: the first key of a principal makes one")
    if principal is None:
        return home
    holder = Principal.objects.select_related("tenant").filter(tenant=home, name=principal).first()
    if holder is None:
        raise NoSuchHolder("principal", f"the tenant {tenant!r} has no principal {principal!r}: its first key makes it")
    return holder


def columns_of(holder: Principal | Tenant) -> dict[str, Principal | Tenant | None]:
    """Return the columns that name the holder in its rows."""
    if isinstance(holder, Tenant):
        return {"tenant": holder, "principal": None}
    return {"tenant": holder.tenant, "principal": holder}
