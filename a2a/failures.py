"""The exceptions by which an agent fails its task in its own words, or asks to be called again."""

from decimal import Decimal

from a2a.errors import BudgetExceeded


def plain_text(value: object) -> str:
    """Return the value as text that UTF-8 can encode, with a question mark for each lone surrogate."""
    return str(value).encode("utf-8", "replace").decode()


class Failure(Exception):
    """An exception by which an agent fails its task in its own words. The caller reads the text.

    Any other value is taken as `str` gives it, for example `raise Failure(error)`.
    """

    def __init__(self, text: object, *, reason: object = "") -> None:
        self.text = plain_text(text)
        super().__init__(self.text)
        self.reason = plain_text(reason)
        """The reason of an error of a2a/errors.py. Languages whose calls wait for the task answer with that error."""


class Retry(Failure):
    """An exception by which an agent asks to be called again, as when a model is overloaded.

    The agent is called again after `after` seconds, or else after its `backoff`, while its `attempts` allow another
    call. After that the task fails, and the caller reads the text.
    """

    def __init__(
        self, text: object = "The agent cannot do it at the moment.", *, after: float | None = None, reason: object = ""
    ) -> None:
        super().__init__(text, reason=reason)
        if after is not None and not (isinstance(after, int | float | Decimal) and 0 <= float(after) < float("inf")):
            raise ValueError(f"Retry(after=...) takes a number of seconds from 0, not {after!r}")
        self.after = None if after is None else float(after)


class BudgetSpent(Failure):
    """The exception of `run.spend` once the task has cost more than its budget. The report counts all the same."""

    def __init__(self, text: str) -> None:
        super().__init__(text, reason=BudgetExceeded.reason)
