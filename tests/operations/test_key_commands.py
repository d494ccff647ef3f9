"""API keys by command: shown once, listed without their secret, refused once revoked or expired."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from tasks_app.management.arguments import find_account
from tasks_app.models import Act, ApiKey, Principal, Tenant
from tasks_app.operators import keys as operators_keys
from tests.support.callers import find_caller
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def keys(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "keys", *words)


def works(key: str) -> bool:
    return find_caller(key) is not None


def test_a_key_is_shown_once_and_works() -> None:
    (made,) = keys("create", "worker", "--tenant", "acme", "--scopes", "tasks:read", "--name", "laptop")
    assert made["key"].startswith("tdk_")
    assert len(made["key"]) > 40
    caller = find_caller(made["key"])
    assert caller is not None
    assert (caller.tenant, caller.name, caller.scopes) == ("acme", "worker", frozenset({"tasks:read"}))
    (listed,) = keys("list")
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert made["key"] not in json.dumps(listed)
    assert made["key"] not in str(list(ApiKey.objects.values()))


def test_the_act_of_making_a_key_names_its_principal() -> None:
    keys("create", "worker", "--tenant", "acme", "--name", "ci")
    after = json.loads(Act.objects.get(verb="make").after)
    assert (after["principal"], after["tenant"]) == ("worker", "acme")


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


@pytest.mark.parametrize("days", ["0", "-1", "nan", "inf", "1e-9", "0.0006"])
def test_a_key_cannot_expire_before_it_exists(days: str) -> None:
    with pytest.raises(CommandError, match=r"--days must be at least a minute \(0\.0007\)"):
        keys("create", "worker", "--days", days)
    assert not ApiKey.objects.exists()


def test_a_key_may_live_for_a_minute() -> None:
    (made,) = keys("create", "worker", "--days", "0.0007")
    assert works(made["key"])


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="no key with the id 77"):
        keys("revoke", "77")


def test_a_tenant_with_the_name_of_a_path_is_refused() -> None:
    with pytest.raises(CommandError, match="'v1': its paths would be mistaken for others"):
        keys("create", "worker", "--tenant", "v1")
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("name", [".", "..", "a?b#", "a#b", "50%", "a\\b", "%2e%2e"])
def test_a_tenant_with_a_name_that_a_path_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(CommandError, match="a path cannot hold that as it is"):
        keys("create", "worker", "--tenant", name)
    assert not Tenant.objects.exists()


def test_a_tenant_that_got_such_a_name_earlier_keeps_its_keys_and_gets_others() -> None:
    Tenant.objects.create(name="a?b#")
    (made,) = keys("create", "worker", "--tenant", "a?b#")
    assert works(made["key"])
    assert keys("rotate", str(made["id"]))[0]["tenant"] == "a?b#"


@pytest.mark.parametrize("odd", ["", " ", "x" * 65, "x" * 500, "two\nlines", "\udcff"], ids=ascii)
@pytest.mark.parametrize("where", ["principal", "--name", "--tenant"])
def test_a_name_that_nobody_can_tell_apart_or_no_column_holds_is_refused(where: str, odd: str) -> None:
    words = ("create", odd) if where == "principal" else ("create", "worker", where, odd)
    long = len(odd.strip())
    wrong = f"1 to 64 printable characters, not {long}" if long > 64 or not long else "printable characters only"
    with pytest.raises(CommandError, match=f"argument {where}: must have {wrong}"):
        keys(*words)
    assert not Principal.objects.exists()
    assert not Tenant.objects.exists()


def test_spaces_around_a_name_make_no_other_principal() -> None:
    keys("create", "worker")
    keys("create", " worker ", "--tenant", "default ")
    assert Principal.objects.count() == Tenant.objects.count() == 1


def test_a_name_may_be_as_long_as_its_column() -> None:
    (made,) = keys("create", "p" * 64, "--tenant", "t" * 64, "--name", "é" * 64, "--scopes", "s" * 255)
    assert (made["principal"], made["name"]) == ("p" * 64, "é" * 64)
    assert keys("create", "other")[0]["name"] == "other"


@pytest.mark.parametrize(
    ("scopes", "sentence"),
    [
        ("tasks:read,tasks:write", "argument --scopes: separate scopes by spaces"),
        ("s" * 256, "argument --scopes: must have 1 to 255 printable characters, not 256"),
        ("", "argument --scopes: must have 1 to 255 printable characters, not 0"),
    ],
)
def test_scopes_that_would_mean_nothing_are_refused(scopes: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        keys("create", "worker", "--scopes", scopes)
    assert not ApiKey.objects.exists()


def log_of(id: int) -> list[tuple[str, ...]]:
    """Return what is written down about a key, oldest first."""
    return list(Act.objects.filter(kind="API key", object_id=str(id)).order_by("pk").values_list("operator", "verb"))


def test_the_maker_and_the_revoker_of_a_key_are_written_down() -> None:
    (made,) = keys("create", "worker", "--operator", "ada")
    keys("revoke", str(made["id"]), "--operator", "otto")
    keys("revoke", str(made["id"]), "--operator", "eve")  # It was revoked already.
    assert log_of(made["id"]) == [("ada", "make"), ("otto", "revoke")]
    assert made["key"] not in str(list(Act.objects.values()))
    (other,) = keys("create", "worker")
    assert log_of(other["id"]) == [(find_account(), "make")]


def test_a_key_whose_maker_cannot_be_written_down_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(operators_keys, "record_acts", fail)
    with pytest.raises(OperationalError):
        keys("create", "worker")
    assert not ApiKey.objects.exists()


def test_the_newest_keys_are_listed_to_the_limit() -> None:
    made = [keys("create", name)[0]["id"] for name in ("one", "two", "three")]
    assert [key["id"] for key in keys("list", "--limit", "2")] == [made[2], made[1]]
    assert len(keys("list")) == 3


LISTS = [
    ("tasks", "list"),
    ("deliveries", "list"),
    ("deliveries", "webhooks"),
    ("exchanges", "list"),
    ("a2a", "keys", "list"),
]


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
@pytest.mark.parametrize("limit", ["0", "-1", "10001", "9" * 30, "many", "٣"])
def test_no_list_is_asked_for_more_than_it_may_print(command: tuple[str, ...], limit: str) -> None:
    with pytest.raises(CommandError, match="argument --limit: must be a number from 1 to 10,000"):
        call_command(*command, "--limit=" + limit)
