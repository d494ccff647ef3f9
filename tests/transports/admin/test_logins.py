"""Logins of operators: wrong ones are counted and make the next wait; sessions end; passwords are not easy to guess."""

import logging
import threading
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import CommandError
from django.db import connection, connections
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, WrongLogins
from tasks_app.operators import logins
from tests.support.commands import printed
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
RIGHT = "correct horse battery staple"
WRONG = "wrong"
TRIES = 5


@pytest.fixture(autouse=True)
def ada(settings: Any) -> User:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # the others are slow on purpose
    settings.A2A_LOGIN_TRIES = TRIES
    return User.objects.create_superuser("ada", password=RIGHT)


def login(password: str = WRONG, user: str = "ada", address: str = "203.0.113.7", **headers: str) -> str:
    """Log in; return the sentence of the form, empty where the login was right."""
    answer = Client().post(
        reverse("admin:login"), {"username": user, "password": password}, REMOTE_ADDR=address, headers=headers
    )
    if answer.status_code == 302:
        return ""
    (sentence,) = answer.context["form"].non_field_errors()
    return str(sentence)


def logins_of(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "logins", *words)


def test_after_some_wrong_logins_the_right_one_waits_and_then_is_let_in(hand: Hand) -> None:
    for _ in range(TRIES - 1):
        assert "Please enter the correct username and password" in login()
    assert "wait 30 seconds" in login()
    assert "wait 30 seconds" in login(RIGHT)
    hand.on(seconds=31)
    assert login(RIGHT) == ""
    assert login(RIGHT) == ""


def test_no_password_is_looked_at_while_a_user_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(User, "check_password", lambda self, password: looked.append(password))
    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", lambda *_: looked.append("hashed"))
    for _ in range(TRIES + 3):
        login()
    assert looked == [WRONG] * TRIES


def test_the_wait_doubles_to_a_quarter_of_an_hour(hand: Hand) -> None:
    assert [logins.lock_seconds("user", wrong) for wrong in (1, 4, 5, 6, 7, 10, 1_000)] == [0, 0, 30, 60, 120, 900, 900]
    assert [logins.lock_seconds("address", wrong) for wrong in (19, 20, 21)] == [0, 30, 60]
    for wait in (30, 60, 120):
        for _ in range(TRIES):
            login()
        assert f"wait {wait} seconds" in login(RIGHT)
        hand.on(seconds=wait + 1)


def test_a_name_that_is_no_users_is_answered_alike(hand: Hand) -> None:
    assert [login() for _ in range(TRIES + 1)] == [login(user="nobody") for _ in range(TRIES + 1)]


def test_an_address_waits_whatever_names_it_tries_and_others_do_not(hand: Hand) -> None:
    for number in range(4 * TRIES):
        login(user=f"name-{number}")
    assert "wait 30 seconds" in login(RIGHT)
    assert login(RIGHT, address="198.51.100.9") == ""
    hand.on(seconds=31)
    assert login(RIGHT) == ""


def test_spellings_of_a_name_and_addresses_of_a_network_are_one() -> None:
    for user in ("ADA", "Ada", "\uff41\uff44\uff41", "ada", "aDa"):
        login(user=user)
    assert "wait" in login(RIGHT)
    for number in range(4 * TRIES):
        login(user=f"name-{number}", address=f"2001:db8::{number:x}")
    assert "wait" in login(user="other", address="2001:db8::ffff")
    assert "wait" not in login(user="other", address="2001:db8:0:1::1")


def test_the_address_of_a_proxy_that_is_not_trusted_locks_nobody(settings: Any) -> None:
    for number in range(4 * TRIES):
        login(user=f"name-{number}", address="10.0.0.1", **{"X-Forwarded-For": "203.0.113.7"})
    assert login(RIGHT, address="10.0.0.1", **{"X-Forwarded-For": "203.0.113.7"}) == ""
    settings.A2A_TRUSTED_PROXIES = ["10.0.0.1"]
    for number in range(4 * TRIES):
        login(user=f"name-{number}x", address="10.0.0.1", **{"X-Forwarded-For": "203.0.113.7"})
    assert "wait" in login(RIGHT, address="10.0.0.1", **{"X-Forwarded-For": "203.0.113.7"})
    assert login(RIGHT, address="10.0.0.1", **{"X-Forwarded-For": "203.0.113.8"}) == ""


def test_wrong_logins_leave_a_trace_also_where_the_right_one_came(caplog: pytest.LogCaptureFixture) -> None:
    assert login(RIGHT) == ""
    assert logins_of("list") == []
    for _ in range(TRIES - 2):
        login()
    with caplog.at_level(logging.WARNING):
        assert login(RIGHT) == ""
    assert "'user ada' logged in from 203.0.113.7 after 3 wrong logins" in caplog.text
    by_kind = {line["kind"]: line for line in logins_of("list")}
    user, address = by_kind["user"], by_kind["address"]
    assert (user["value"], user["running"], user["total"], user["last_with"]) == ("ada", 0, 3, "203.0.113.7")
    assert user["right_at"] > user["began_at"]
    assert (address["value"], address["running"], address["total"]) == ("203.0.113.7", 3, 3)


def test_a_lock_is_logged_and_tries_during_it_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(TRIES + 4):
            login(user="ada\u202e")
    assert caplog.text.count("are locked for 30 s after 5 wrong ones") == 1
    assert "\u202e" not in caplog.text
    (user,) = WrongLogins.objects.filter(kind="user")
    assert (user.total, user.refused) == (TRIES, 4)


def test_an_operator_ends_a_wait_by_command_and_in_the_admin(client: Client, ada: User) -> None:
    for _ in range(TRIES):
        login()
    assert logins_of("unlock", "Ada", "--operator", "oscar") == [{"kind": "user", "value": "ada", "done": "unlock"}]
    assert login(RIGHT) == ""
    with pytest.raises(CommandError, match="There are no wrong logins of 'nobody'"):
        logins_of("unlock", "nobody")
    client.force_login(ada)
    for _ in range(TRIES):
        login()
    row = WrongLogins.objects.get(kind="user")
    address = reverse("admin:tasks_app_wronglogins_changelist")
    assert "203.0.113.7" in client.get(address).content.decode()
    client.post(address, {"action": "unlock", "_selected_action": [row.pk]})
    assert login(RIGHT) == ""
    acts = Act.objects.filter(verb="unlock").order_by("pk").values_list("operator", "door", "verb", "name")
    assert list(acts) == [("oscar", "command", "unlock", "user ada"), ("ada", "admin", "unlock", "user ada")]


def test_rows_are_forgotten_after_a_month(hand: Hand) -> None:
    login(user="old")
    hand.on(seconds=31 * 86_400)
    login(user="new")
    assert set(WrongLogins.objects.values_list("kind", "value")) == {("user", "new"), ("address", "203.0.113.7")}


@pytest.mark.django_db(transaction=True)
def test_logins_that_come_at_once_are_no_more_than_one_after_the_other() -> None:
    counted: list[bool] = []

    def begin() -> None:
        try:
            counted.append(logins.begin_login("ada", "203.0.113.7"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=begin) for _ in range(3 * TRIES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counted) == [False] * (2 * TRIES) + [True] * TRIES


@pytest.mark.django_db(transaction=True)
def test_a_right_login_forgets_no_wrong_one_that_comes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    address, others = "203.0.113.7", ["eve"]
    original = WrongLogins.from_db.__func__  # type: ignore[attr-defined]

    def from_db(cls: Any, *args: Any) -> WrongLogins:
        row: WrongLogins = original(cls, *args)
        if row.kind == "address" and others and not connection.in_atomic_block:
            logins.begin_login(others.pop(), address)
        return row

    assert logins.begin_login("ada", address)
    monkeypatch.setattr(WrongLogins, "from_db", classmethod(from_db))
    logins.accept_login("ada", address, is_complete=True)
    for other in others:  # It had to wait for the lock.
        logins.begin_login(other, address)
    assert WrongLogins.objects.get(kind="address").running == 1


def test_a_locked_address_stores_no_further_names() -> None:
    for number in range(4 * TRIES):
        login(user=f"name-{number}")
    before = WrongLogins.objects.count()
    assert "wait" in login(user="another")
    assert WrongLogins.objects.count() == before
    assert WrongLogins.objects.get(kind="address").refused == 1


def test_a_login_beside_a_right_one_that_deletes_its_counts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    create, at_once = QuerySet.bulk_create, ["user", "address"]

    def create_beside(rows: Any, objects: Any, **options: Any) -> Any:
        created = create(rows, objects, **options)
        if at_once:
            WrongLogins.objects.filter(kind=at_once.pop()).delete()
        return created

    monkeypatch.setattr(QuerySet, "bulk_create", create_beside)
    assert "Please enter the correct username and password" in login()
    assert not at_once
    assert sorted(WrongLogins.objects.values_list("kind", "running")) == [("address", 1), ("user", 1)]


def test_a_session_ends_when_nothing_is_done_and_some_time_after_the_login(
    client: Client, ada: User, hand: Hand, settings: Any
) -> None:
    settings.A2A_SESSION_HOURS, settings.A2A_SESSION_IDLE_MINUTES = 12, 60
    page = reverse("admin:index")
    client.force_login(ada)
    for _ in range(14):
        hand.on(seconds=50 * 60)
        assert client.get(page).status_code == 200
    hand.on(seconds=50 * 60)  # 12 h and a half after the login
    assert client.get(page).status_code == 302
    client.force_login(ada)
    hand.on(seconds=61 * 60)
    assert client.get(page).status_code == 302


@pytest.mark.parametrize(
    "password", ["1" * 12, "abababababab", "password1234", "ada-lovelace", "short", "aaaabbbbccccdddd"]
)
def test_a_password_that_is_easy_to_guess_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, User(username="ada-lovelace"))
    validate_password(RIGHT, User(username="ada-lovelace"))
