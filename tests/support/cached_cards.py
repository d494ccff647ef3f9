"""The caches of cards. A process never empties them: an agent that changes has a new revision, and settings stay."""

from tasks_app.cards import public


def forget_cards() -> None:
    """Empty every cache of the module, after a test has changed agents or settings."""
    for value in vars(public).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
