"""The books of an account, as tests read them."""

from tasks_app.limits.accounts import Account


def holdings(account: Account) -> list[tuple[str, int | None, int]]:
    """Return the kind, owner and amount of everything in use."""
    with account.lock:
        return sorted(((kind, owner, amount) for (kind, owner), amount in account.amounts.items()), key=str)
