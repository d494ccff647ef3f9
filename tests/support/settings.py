"""Settings that a test may change while other threads read them."""

from typing import Any

from django.conf import LazySettings
from django.utils.functional import empty

_set, _get = LazySettings.__setattr__, LazySettings.__getattr__


def _swap(self: LazySettings, name: str, value: Any) -> None:
    """Set a setting, or put other settings in place of all without an instant in which there are none.

    Django empties the object first. A thread that reads a setting in that instant, such as the sender
    of webhooks, finds no settings at all and fails.
    """
    if name != "_wrapped" or value is empty:
        _set(self, name, value)
        return
    self.__dict__["_wrapped"] = value
    for cached in list(self.__dict__):
        if cached != "_wrapped":
            self.__dict__.pop(cached, None)


def _read(self: LazySettings, name: str) -> Any:
    """Return a setting. Forget it at once when the settings were replaced after it was read."""
    before = self.__dict__.get("_wrapped")
    value = _get(self, name)
    if self.__dict__.get("_wrapped") is not before:
        self.__dict__.pop(name, None)
    return value


def prepare() -> None:
    """Let tests replace the settings of this process while its threads read them.

    Only tests replace settings as a whole, so the product has nothing to mend.
    """
    LazySettings.__setattr__ = _swap  # type: ignore[method-assign]
    LazySettings.__getattr__ = _read  # type: ignore[method-assign]
