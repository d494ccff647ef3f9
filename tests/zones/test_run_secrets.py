"""Secrets of many messages together: one statement stores them, and one deletes them."""

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks_app import models, run_secrets
from tasks_app.database.groups import do_group
from tasks_app.database.prepared import prepared
from tasks_app.database.tables import SECRETS
from tasks_app.run_secrets import DeleteSecrets

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
MESSAGES = [f"message {number}" for number in range(20)]
KEYS = [run_secrets.key_of("task", message) for message in MESSAGES]


def test_secrets_of_many_messages_are_deleted_by_one_statement() -> None:
    rows = [run_secrets.row_of("task", message, {"bot_token": message}) for message in MESSAGES]
    with prepared() as cursor:
        SECRETS.write(cursor, [row for row in rows if row])
    for key, message in zip(KEYS, MESSAGES, strict=True):
        assert asyncio.run(run_secrets.read(key)) == {"bot_token": message}
    with CaptureQueriesContext(connection) as captured:
        assert do_group(DeleteSecrets, [DeleteSecrets(key) for key in KEYS[1:]]) == [None] * (len(KEYS) - 1)
    assert sum(query["sql"].startswith("DELETE") for query in captured.captured_queries) == 1
    assert list(models.RunSecret.objects.values_list("key", flat=True)) == [KEYS[0]]


def test_a_message_without_secrets_has_no_row() -> None:
    assert run_secrets.row_of("task", "message", {}) is None


def test_messages_with_one_id_in_two_tasks_have_secrets_of_their_own() -> None:
    assert run_secrets.key_of("one", "message") != run_secrets.key_of("other", "message")
