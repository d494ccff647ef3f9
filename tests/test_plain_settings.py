"""Settings, which are read as the attributes of any object are: what Django's own way of reading them gives stays."""

import pytest
from django.conf import LazySettings, settings
from django.test import override_settings


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
