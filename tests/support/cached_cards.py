"""The caches of cards. A process never empties them, because neither its agents nor its settings change."""

from tasks_app.cards import public


def forget_cards() -> None:
    """Empty every cache of the module, after a test has changed agents or settings."""
    for value in vars(public).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
