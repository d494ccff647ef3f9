"""Amounts of money, as whole millionths of a US dollar, so that sums of them are exact."""

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from msgspec import Struct

MICRO = 1_000_000
"""Millionths in a dollar."""
MOST = 1_000_000_000
"""Dollars of any one amount, at most."""
HEADER = "X-Budget-USD"
"""The header, or the equivalent of the door, with the most that the caller pays for a task."""
_AMOUNT = re.compile(r"[0-9]{1,10}(\.[0-9]{1,6})?")
AMOUNT_WORDS = f"dollars as digits with at most six after the point, such as 0.25, up to {MOST}"
"""The words for a valid amount in a text, for error messages."""


class Cost(Struct, frozen=True):
    """The expected cost of a task, in millionths."""

    least: int
    most: int


@lru_cache(maxsize=1024)
def parse_usd(text: str) -> int:
    """Return the amount of a text from outside. Raises ValueError for anything but plain digits with a point."""
    if _AMOUNT.fullmatch(text) is None:
        raise ValueError(f"must be {AMOUNT_WORDS}")
    micros = int(Decimal(text) * MICRO)
    if micros > MOST * MICRO:
        raise ValueError(f"must be {AMOUNT_WORDS}")
    return micros


def micros_of(value: Any) -> int:
    """Return the amount of a number or a text in code, rounded up to a millionth. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError(f"an amount in dollars is a number or a text such as '0.012', not {value!r}")
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"an amount in dollars is a number or a text such as '0.012', not {value!r}") from None
    if not (amount.is_finite() and 0 <= amount <= MOST):
        raise ValueError(f"an amount in dollars is from 0 to {MOST}, not {value!r}")
    return int((amount * MICRO).to_integral_value(ROUND_CEILING))


def cost_of(value: Any) -> Cost:
    """Return the cost of an option of @agent: a pair (minimum, maximum), or one amount for both. Raises ValueError."""
    least, most = value if isinstance(value, tuple | list) and len(value) == 2 else (value, value)
    cost = Cost(micros_of(least), micros_of(most))
    if not 0 < cost.most >= cost.least:
        raise ValueError("the maximum of a cost is above 0, and not below the minimum")
    return cost


def is_cost(value: Any) -> bool:
    """Return whether a value is None or the cost of an agent."""
    try:
        return value is None or bool(cost_of(value))
    except ValueError:
        return False


def usd(micros: int) -> Decimal:
    """Return an amount in dollars."""
    return Decimal(micros) / MICRO


def show_usd(micros: int) -> str:
    """Return an amount as text, with two digits after the point or more, such as 0.25 or -1.000001."""
    whole, rest = divmod(abs(micros), MICRO)
    return f"{'-' if micros < 0 else ''}{whole}.{f'{rest:06}'.rstrip('0').ljust(2, '0')}"
