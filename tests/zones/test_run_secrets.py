"""Secrets of many messages together: one statement stores them, and one deletes them."""

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks_app import models, run_secrets
from tasks_app.database.groups import do_group
from tasks_app.run_secrets import DeleteSecrets, StoreSecrets

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
KEYS = [run_secrets.key_of("home", "owner", f"message {number}") for number in range(20)]


def statements(captured: CaptureQueriesContext, verb: str) -> int:
    return sum(query["sql"].startswith(verb) for query in captured.captured_queries)


def test_secrets_of_many_messages_are_one_statement() -> None:
    items = [run_secrets.storing_of(key, {"bot_token": f"t{number}"}) for number, key in enumerate(KEYS)]
    with CaptureQueriesContext(connection) as captured:
        assert do_group(StoreSecrets, items) == [None] * len(KEYS)
    assert statements(captured, "INSERT") == 1
    for number, key in enumerate(KEYS):
        assert asyncio.run(run_secrets.read(key)) == {"bot_token": f"t{number}"}
    with CaptureQueriesContext(connection) as captured:
        assert do_group(DeleteSecrets, [DeleteSecrets(key) for key in KEYS[1:]]) == [None] * (len(KEYS) - 1)
    assert statements(captured, "DELETE") == 1
    assert list(models.RunSecret.objects.values_list("key", flat=True)) == [KEYS[0]]


def test_a_later_secret_of_a_message_replaces_the_former() -> None:
    former, later = (run_secrets.storing_of(KEYS[0], {"bot_token": text}) for text in ("former", "later"))
    assert former.unique() == later.unique()  # They never stand in one statement, which could not write both.
    do_group(StoreSecrets, [former])
    do_group(StoreSecrets, [later])
    assert asyncio.run(run_secrets.read(KEYS[0])) == {"bot_token": "later"}
