"""Amounts of money: read from outside, given in code, added up and shown."""

from decimal import Decimal
from typing import Any

import pytest

from a2a import BudgetSpent, Failure, Run, agent
from a2a.agents import define
from a2a.definitions import AgentDefinitionError
from a2a.money import MICRO, MOST, Cost, cost_of, micros_of, parse_usd, show_usd
from a2a.testing import play

WRONG = (
    *("", " ", "-1", "+1", "1e3", "1E-2", "NaN", "inf", "-0", "1,5", "0.25, 0.5", ".5", "5.", "0.0000001", "1.2.3"),
    *("1000000000.000001", "9999999999", "0x10", "1_000", "\u0661", "1 USD", "$1", "1\n", "9" * 40, "0" * 5_000),
)


@pytest.mark.parametrize("text", WRONG)
def test_anything_but_plain_digits_is_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be dollars as digits"):
        parse_usd(text)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0", 0),
        ("0.000001", 1),
        ("0.25", 250_000),
        ("00.10", 100_000),
        (str(MOST), MOST * MICRO),
        ("7.000000", 7 * MICRO),
    ],
)
def test_an_amount_is_read_exactly(text: str, micros: int) -> None:
    assert parse_usd(text) == micros
    assert parse_usd(show_usd(micros)) == micros


def test_an_amount_is_shown_with_two_digits_or_as_many_as_it_has() -> None:
    shown = {0: "0.00", 10: "0.00001", 250_000: "0.25", -MICRO - 1: "-1.000001", 12 * MICRO: "12.00"}
    assert {micros: show_usd(micros) for micros in shown} == shown


def test_an_amount_in_code_is_rounded_up_to_a_millionth() -> None:
    assert [micros_of(value) for value in ("0.012", 0.1, Decimal("0.0000001"), 3, 1.5e-7)] == [
        12_000,
        100_000,
        1,
        3 * MICRO,
        1,
    ]
    for wrong in (-1, "x", None, True, float("nan"), float("inf"), "1e400", MOST + 1, b"1"):
        with pytest.raises(ValueError, match=r"^an amount in dollars is"):
            micros_of(wrong)


def test_a_cost_is_a_pair_or_one_amount() -> None:
    assert cost_of(("0.01", "0.20")) == cost_of([0.01, Decimal("0.2")]) == Cost(10_000, 200_000)
    assert cost_of("0.5") == Cost(500_000, 500_000)
    assert cost_of((0, 1)) == Cost(0, MICRO)


# ------------------------------------------------------------------- the run


def spender(*amounts: Any, cost: Any = ("0.01", "0.20")) -> Any:
    def spends(run: Run) -> str:
        """Spends."""
        for amount in amounts:
            run.spend(amount)
        return f"{run.spent} of {run.budget}, {run.budget_left} left"

    return agent(name="spends", cost=cost)(spends) if cost else spends


def test_an_agent_in_a_test_adds_up_what_it_spends() -> None:
    assert play(spender("0.01", 0.02)).text == "0.03 of None, None left"
    assert play(spender("0.01"), budget="0.05").text == "0.01 of 0.05, 0.04 left"
    assert play(spender("0.05"), budget="0.05").run.spent == Decimal("0.05"), "all of it may be spent"


def test_a_report_beyond_the_budget_counts_and_is_a_failure() -> None:
    with pytest.raises(BudgetSpent, match=r"it has cost 0\.06 USD, and may cost 0\.05 USD") as raised:
        play(spender("0.06"), budget="0.05")
    assert isinstance(raised.value, Failure)


@pytest.mark.parametrize("amount", [-1, "x", None, float("nan")])
def test_a_report_that_is_no_amount_is_an_error_of_the_agent(amount: Any) -> None:
    with pytest.raises(ValueError, match="an amount in dollars"):
        play(spender(amount))


def test_an_agent_without_a_cost_is_told_to_declare_one() -> None:
    with pytest.raises(ValueError, match=r"@agent\(cost="):
        play(spender("0.01", cost=None))


def test_a_maximum_below_the_minimum_is_refused() -> None:
    def good(run: Run) -> str:
        """Is good."""
        return ""

    with pytest.raises(AgentDefinitionError, match="cost= must be a pair of amounts in dollars"):
        define(good, {"cost": ("0.2", "0.1")})
