"""The doctor finds API keys whose networks or language cannot be read."""

from datetime import timedelta
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.models import ApiKey
from tests.commands.doctoring import doctor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.fixture
def row() -> ApiKey:
    """A key of two networks, pinned to a language."""
    access.new_key("olga", networks="10.1.0.0/16 2001:db8::/32", language="a2a-1.0")
    return ApiKey.objects.get()


def test_keys_that_are_well_have_no_finding(row: ApiKey) -> None:
    access.new_key("olga")
    assert doctor()[0] == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"networks": "10.1.0.0/99"}, "'10.1.0.0/99' is not a network"),
        ({"networks": " "}, "names no network"),
        ({"language": "klingon"}, "pinned to 'klingon'"),
    ],
)
def test_a_key_that_cannot_be_read_is_found_until_it_ends(row: ApiKey, values: dict[str, Any], words: str) -> None:
    ApiKey.objects.update(**values)
    (found,) = doctor()[0]
    assert (found["kind"], found["subject"]) == ("key", str(row.pk))
    assert words in found["problem"]
    ApiKey.objects.update(expires_at=clock.now() - timedelta(days=1))
    assert doctor()[0] == []
