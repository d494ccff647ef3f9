"""A development server makes an operator and a key where there are none, and leaves all others as they are."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from tasks_app.callers import access
from tasks_app.checks.production import is_guessable
from tasks_app.management import development
from tasks_app.models import ApiKey
from tests.support.callers import find_caller

CHOSEN, OTHER = "tdk_chosen-by-a-person-1", "tdk_chosen-by-a-person-2"
pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR, settings.DEV_KEY = tmp_path, ""
    return tmp_path


def may_call(key: str) -> bool:
    """Return whether a call with the key is let in."""
    return find_caller(key) is not None


def user(**values: Any) -> Any:
    return get_user_model().objects.create_user(**values)


def test_an_operator_is_made_once_and_the_password_printed_each_time(folder: Path) -> None:
    first = development.prepare_login()
    password = (folder / "admin.password").read_text()
    assert first == f"login admin   password {password}" == development.prepare_login()
    assert (folder / "admin.password").stat().st_mode & 0o077 == 0
    assert get_user_model().objects.get().is_superuser


def test_a_password_that_the_operator_changed_stays(folder: Path) -> None:
    development.prepare_login()
    admin = get_user_model().objects.get(username="admin")
    admin.set_password("their own password")
    admin.save()
    assert development.prepare_login().startswith("with your own login; `manage.py changepassword admin` sets")
    assert get_user_model().objects.get().check_password("their own password")


@pytest.mark.parametrize("superuser", [True, False])
@pytest.mark.parametrize("name", ["admin", "Admin"])
def test_a_user_of_that_name_who_is_somebody_else_stays(folder: Path, superuser: bool, name: str) -> None:
    user(username=name, password="their own password", is_superuser=superuser)
    assert development.prepare_login().startswith("with your own login")
    admin = get_user_model().objects.get()
    assert (admin.check_password("their own password"), admin.is_superuser) == (True, superuser)
    assert not (folder / "admin.password").exists()


def test_no_operator_is_made_beside_another(folder: Path) -> None:
    user(username="ann", password="x", is_superuser=True)
    assert development.prepare_login() == "with your own login; `manage.py createsuperuser` creates one"
    assert get_user_model().objects.count() == 1


def test_a_key_is_made_once(folder: Path) -> None:
    key = development.prepare_key()
    assert key == development.prepare_key() == (folder / "api.key").read_text()
    assert may_call(key)
    assert ApiKey.objects.count() == 1


def test_a_key_that_was_revoked_is_not_brought_back(folder: Path) -> None:
    former = development.prepare_key()
    access.revoke(ApiKey.objects.all())
    key = development.prepare_key()
    assert key != former
    assert key == (folder / "api.key").read_text()
    assert (may_call(former), may_call(key)) == (False, True)


def test_a_chosen_key_ends_when_it_is_no_longer_set(settings: Any) -> None:
    own = development.prepare_key()
    settings.DEV_KEY = CHOSEN
    assert development.prepare_key() == CHOSEN
    settings.DEV_KEY = OTHER
    assert development.prepare_key() == OTHER
    assert [may_call(key) for key in (own, CHOSEN, OTHER)] == [True, False, True]
    settings.DEV_KEY = CHOSEN
    development.prepare_key()
    assert [may_call(key) for key in (own, CHOSEN, OTHER)] == [True, True, False]
    settings.DEV_KEY = ""
    development.end_former_key()  # as `serve` does
    assert [may_call(key) for key in (own, CHOSEN, OTHER)] == [True, False, False]


def test_a_chosen_key_that_is_another_persons_stays_theirs(settings: Any) -> None:
    access.new_key("ann", key=CHOSEN, scopes="tasks:read")
    settings.DEV_KEY = CHOSEN
    assert development.prepare_key() == CHOSEN
    settings.DEV_KEY = ""
    development.prepare_key()
    caller = find_caller(CHOSEN)
    assert caller is not None
    assert (caller.name, caller.scopes) == ("ann", {"tasks:read"})


def test_a_chosen_key_that_was_revoked_is_refused(settings: Any) -> None:
    settings.DEV_KEY = CHOSEN
    development.prepare_key()
    access.revoke(ApiKey.objects.filter(digest=access.digests(CHOSEN)[0]))
    with pytest.raises(CommandError, match="DEV_KEY is a key that was revoked"):
        development.prepare_key()
    assert not may_call(CHOSEN)


@pytest.mark.parametrize("key", ["x", "a" * 19, "ab" * 20, "seven teen words of it", "schlüssel-schlüssel-1"])
def test_a_chosen_key_that_can_be_guessed_is_refused(settings: Any, key: str) -> None:
    settings.DEV_KEY = key
    with pytest.raises(CommandError, match="DEV_KEY must") as refused:
        development.prepare_key()
    assert key == "x" or key not in str(refused.value)
    assert not may_call(key)


def test_no_other_key_can_look_like_that_of_a_development_server() -> None:
    with pytest.raises(CommandError, match="choose another"):
        call_command("a2a", "keys", "create", "developer", "--name", "development")
    access.new_key("developer", name="mine")
    assert not access.development_keys().exists()
    development.prepare_key()
    assert access.development_keys().count() == 1


@pytest.mark.parametrize(
    "secret", ["x" * 50, "abcdefghijkl" * 5, "0123456789abcdefghijklmno", "django-insecure-d8f7(x"]
)
def test_a_secret_that_can_be_guessed_is_told(secret: str) -> None:
    assert is_guessable(secret)
    assert not is_guessable("7d0a4b6f6a4f43b4a51d57aa9b1a7c5e")
