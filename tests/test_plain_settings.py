"""Settings, which are read as the attributes of any object are: what Django's own way of reading them gives stays."""

import pytest
from django.conf import LazySettings, settings
from django.test import override_settings

from config.environment import find_misspellings
from tasks_app.checks.variables import check_names


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
