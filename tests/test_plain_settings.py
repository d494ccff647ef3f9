"""Settings, which are read as the attributes of any object are: what Django's own way of reading them gives stays."""

import ast
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from config import environment
from config.environment import find_misspellings
from tasks_app.checks.variables import check_names
from tasks_app.management.reference.settings import sources

UNITS = {"SECONDS": 1, "MINUTES": 60, "HOURS": 3_600, "DAYS": 86_400}
"""The last words of the names of times, with their seconds."""
LONGEST = 36_500 * UNITS["DAYS"]
"""Seconds that a date of Python, a timeout of the system and a time of PostgreSQL can hold."""


def times() -> list[Any]:
    """Return the calls that read a time: its reader, its name, and its further arguments."""
    calls = [node for source in sources() for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(call, call.args[0]) for call in calls if call.args]
    return [
        pytest.param(getattr(call.func, "id", ""), name.value, call.args[1:], id=name.value)
        for call, name in names
        if isinstance(name, ast.Constant) and str(name.value).rpartition("_")[2] in UNITS
    ]


@pytest.mark.parametrize(("reader", "name", "arguments"), times())
def test_a_time_that_is_too_long_is_refused_with_the_longest(
    reader: str, name: str, arguments: list[ast.expr], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(arguments) == 3, "the reader gets a default, a minimum and a maximum"
    maximum = ast.literal_eval(arguments[2])
    assert maximum * UNITS[name.rpartition("_")[2]] <= LONGEST
    monkeypatch.setenv(name, "1e300")
    with pytest.raises(ImproperlyConfigured, match=f"{name} must be at most {maximum:.15g}, not '1e300'"):
        getattr(environment, reader)(name, 0, 0, maximum)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e400", "x"])
def test_a_setting_that_is_no_finite_number_is_refused_as_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_TASK_DAYS", value)
    with pytest.raises(ImproperlyConfigured, match=f"A2A_TASK_DAYS must be a number, not '{value}'"):
        environment.number("A2A_TASK_DAYS", 30, 0, 36_500)


def test_an_overridden_setting_is_read_while_it_is_overridden() -> None:
    before = settings.A2A_CALL_SECONDS
    with override_settings(A2A_CALL_SECONDS=before + 1):
        assert before + 1 == settings.A2A_CALL_SECONDS
    assert before == settings.A2A_CALL_SECONDS


def test_a_setting_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="A2A_NOTHING"):
        settings.A2A_NOTHING  # noqa: B018  # reading it is the test


def test_a_setting_is_read_without_djangos_search_for_proxies() -> None:
    assert LazySettings.__getattribute__ is object.__getattribute__


def test_a_misspelt_variable_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A2A_CALER_RATE", "A2A_RSA_FILE", "A2A_CARD_KYE_FILE", "A2A_CALLER_RATE", "WEATHER_KEY"):
        monkeypatch.setenv(name, "1")
    found = find_misspellings()
    assert found == {"A2A_CALER_RATE": "A2A_CALLER_RATE", "A2A_CARD_KYE_FILE": "A2A_CARD_KEY"}
    with override_settings(MISSPELLINGS=found):
        assert [(warning.id, warning.hint) for warning in check_names()] == [
            ("a2a.W008", "Did you mean A2A_CALLER_RATE?"),
            ("a2a.W008", "Did you mean A2A_CARD_KEY?"),
        ]
