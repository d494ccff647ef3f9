"""API keys by command: shown once, listed without their secret, refused once revoked or expired."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tasks_app.access import FindCaller, callers_many, digest
from tasks_app.models import ApiKey

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def keys(*words: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("a2a", "keys", *words, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def works(key: str) -> bool:
    return callers_many([FindCaller(digest(key))]) != [None]


def test_a_key_is_shown_once_and_works() -> None:
    (made,) = keys("create", "worker", "--tenant", "acme", "--scopes", "tasks:read", "--name", "laptop")
    assert made["key"].startswith("tdk_")
    assert len(made["key"]) > 40
    (caller,) = callers_many([FindCaller(digest(made["key"]))])
    assert caller is not None
    assert (caller.tenant, caller.name, caller.scopes) == ("acme", "worker", frozenset({"tasks:read"}))
    (listed,) = keys("list")
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert made["key"] not in json.dumps(listed)
    assert made["key"] not in str(list(ApiKey.objects.values()))


def test_a_revoked_key_is_refused_and_others_go_on() -> None:
    one, two = keys("create", "worker")[0], keys("create", "worker")[0]
    (revoked,) = keys("revoke", str(one["id"]))
    assert revoked["revoked_at"]
    assert (works(one["key"]), works(two["key"])) == (False, True)
    assert keys("revoke", str(one["id"])) == [revoked]


def test_an_expired_key_is_refused() -> None:
    (made,) = keys("create", "worker", "--days", "1")
    assert works(made["key"])
    ApiKey.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert not works(made["key"])


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf"])
def test_a_key_cannot_expire_before_it_exists(days: str) -> None:
    with pytest.raises(CommandError, match="--days"):
        keys("create", "worker", "--days", days)


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="no key 77"):
        keys("revoke", "77")


def test_a_tenant_with_the_name_of_a_path_is_refused() -> None:
    with pytest.raises(CommandError, match="'v1': it would be taken for another path"):
        keys("create", "worker", "--tenant", "v1")
    assert not ApiKey.objects.exists()
