"""Secrets of many messages together: one statement stores them, and one deletes them."""

import asyncio
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tasks_app import models, run_secrets
from tasks_app.database.groups import do_group
from tasks_app.database.rows import SECRETS
from tasks_app.run_secrets import DeleteSecrets, StoreSecrets

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
KEYS = [run_secrets.key_of("home", "owner", f"message {number}") for number in range(20)]


def test_secrets_of_many_messages_are_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    write: Any = SECRETS.write
    items = [StoreSecrets(run_secrets.row_of(key, {"bot_token": f"t{n}"})) for n, key in enumerate(KEYS)]
    written: list[int] = []
    monkeypatch.setattr(SECRETS, "write", lambda cursor, rows: written.append(len(rows)) or write(cursor, rows))
    assert do_group(StoreSecrets, items) == [None] * len(KEYS)
    assert written == [len(KEYS)]
    for number, key in enumerate(KEYS):
        assert asyncio.run(run_secrets.read(key)) == {"bot_token": f"t{number}"}
    with CaptureQueriesContext(connection) as captured:
        assert do_group(DeleteSecrets, [DeleteSecrets(key) for key in KEYS[1:]]) == [None] * (len(KEYS) - 1)
    assert sum(query["sql"].startswith("DELETE") for query in captured.captured_queries) == 1
    assert list(models.RunSecret.objects.values_list("key", flat=True)) == [KEYS[0]]


def test_a_later_secret_of_a_message_replaces_the_former() -> None:
    former, later = (StoreSecrets(run_secrets.row_of(KEYS[0], {"bot_token": text})) for text in ("former", "later"))
    assert former.unique() == later.unique()  # They never stand in one statement, which could not write both.
    do_group(StoreSecrets, [former])
    do_group(StoreSecrets, [later])
    assert asyncio.run(run_secrets.read(KEYS[0])) == {"bot_token": "later"}
