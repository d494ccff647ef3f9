"""New passwords, by forms of the admin, by commands and otherwise: the tokens of the operator end with the old one."""

import importlib
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, OperatorToken
from tasks_app.operators import tokens
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tests.operators.people import OPS, Program, operator, program
from tests.support.commands import run, text_of
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
OLD, NEW = "correct horse battery staple", "another horse battery staple"


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def with_password(user: User) -> Program:
    """Return a program of an operator who has a password of their own."""
    user.set_password(OLD)
    user.save()
    return Program(user, tokens.make_token(user, "a test", 1, OPS)[1])


def test_tokens_end_when_operators_change_their_password() -> None:
    robot = with_password(operator(VIEWER))
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    client = browser(robot.user)
    place = reverse("admin:password_change")
    assert client.post(place, form | {"old_password": "wrong"}).status_code == 200
    assert robot.get("tasks/").status_code == 200
    assert client.post(place, form).status_code == 302
    assert robot.get("tasks/").status_code == 401
    act = Act.objects.latest("id")
    assert (act.operator, act.verb, act.object_id) == (robot.user.username, "password", str(robot.user.pk))
    assert act.after == '{"tokens":1}'


def test_a_password_is_kept_if_the_tokens_cannot_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = with_password(operator(VIEWER))
    client = browser(robot.user)
    client.raise_request_exception = False

    def die(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("tasks_app.operators.users.end_access", die)
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    assert client.post(reverse("admin:password_change"), form).status_code == 500
    robot.user.refresh_from_db()
    assert robot.user.check_password(OLD)
    assert robot.get("tasks/").status_code == 200


def test_the_old_password_cannot_be_guessed_on_the_page_for_a_new_one(settings: Any) -> None:
    settings.A2A_LOGIN_TRIES = 3
    user, place = with_password(operator(VIEWER)).user, reverse("admin:password_change")
    client, form = browser(user), {"old_password": OLD, "new_password1": NEW, "new_password2": "mistyped"}
    for _ in range(4):  # A right one is no wrong login, whatever becomes of the new one.
        assert "Too many" not in client.post(place, form, follow=True).content.decode()
    for _ in range(3):
        assert client.post(place, form | {"old_password": "wrong"}).status_code == 200
    page = client.post(place, form | {"new_password2": NEW}, follow=True).content.decode()
    assert "Too many wrong passwords: wait " in page
    user.refresh_from_db()
    assert user.check_password(OLD)


@pytest.mark.parametrize(("page", "left"), [("password_change", ""), ("change", "is_staff"), ("change", "is_active")])
def test_tokens_end_when_a_form_gives_a_password_or_ends_an_account(page: str, left: str) -> None:
    """A form leaves an account only one of its two flags."""
    robot, chief = program(VIEWER), program(ADMINISTRATOR).user
    forms: dict[str, dict[str, Any]] = {
        "password_change": {"password1": NEW, "password2": NEW, "usable_password": "true"},
        "change": {
            "username": robot.user.username,
            left: "on",
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00",
            "reach-TOTAL_FORMS": "0",
            "reach-INITIAL_FORMS": "0",
        },
    }
    place = reverse(f"admin:auth_user_{page}", args=[robot.user.pk])
    client = browser(chief)
    seen = form_digest(client, place) if page == "change" else {}
    assert client.post(place, forms[page] | seen).status_code == 302
    User.objects.filter(pk=robot.user.pk).update(is_active=True, is_staff=True)
    assert robot.get("tasks/").status_code == 401
    assert '"tokens":1' in Act.objects.filter(verb="change").latest("id").after


def answer_with(monkeypatch: pytest.MonkeyPatch, *passwords: str) -> None:
    """Answer the questions of a command for a password."""
    answers = iter(passwords)
    monkeypatch.setattr("getpass.getpass", lambda *_, **__: next(answers))


def test_tokens_end_when_a_command_changes_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = program(VIEWER)
    answer_with(monkeypatch, NEW, NEW)
    text_of("changepassword", robot.user.username, "--operator", "ops", "--reason", "lost")
    assert robot.get("tasks/").status_code == 401
    assert User.objects.get(pk=robot.user.pk).check_password(NEW)
    act = Act.objects.latest("id")
    assert (act.operator, act.door, act.verb, act.reason) == ("ops", "command", "password", "lost")
    assert (act.object_id, act.after) == (str(robot.user.pk), '{"tokens":1}')


def test_a_command_that_changes_no_password_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = program(VIEWER)
    acts = Act.objects.count()
    answer_with(monkeypatch, *("too short", "too short") * 3)
    with pytest.raises(CommandError):
        text_of("changepassword", robot.user.username)
    assert (robot.get("tasks/").status_code, Act.objects.count()) == (200, acts)


def test_a_command_without_a_terminal_says_which_one_asks_for_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object, **__: object) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", ask)
    with pytest.raises(CommandError, match=r"`manage.py a2a users password NAME` makes a random one"):
        text_of("changepassword", program(VIEWER).user.username)


def test_tokens_end_however_a_password_is_set() -> None:
    robot, other = program(VIEWER), program(VIEWER)
    robot.user.set_password(NEW)
    User.objects.filter(pk=robot.user.pk).update(password=robot.user.password)
    assert robot.get("tasks/").status_code == 401
    assert other.get("tasks/").status_code == 200


def test_tokens_stay_when_an_old_password_is_hashed_anew(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)
    former = program(VIEWER)
    robot = with_password(former.user)
    digest = OperatorToken.objects.latest("id").password_digest
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 2)
    assert User.objects.get(pk=robot.user.pk).check_password(OLD)
    assert OperatorToken.objects.latest("id").password_digest != digest
    assert robot.get("tasks/").status_code == 200
    assert former.get("tasks/").status_code == 401, "a token of a former password stays ended"


def test_tokens_stay_under_a_former_secret_key_and_end_without_it(settings: Any) -> None:
    robot, former = program(VIEWER), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "x" * 60, [former]
    assert robot.get("tasks/").status_code == 200
    settings.SECRET_KEY_FALLBACKS = []
    assert robot.get("tasks/").status_code == 401


def test_tokens_from_before_are_bound_to_the_present_password() -> None:
    robot = program(VIEWER)
    OperatorToken.objects.update(password_digest="")
    assert robot.get("tasks/").status_code == 401
    importlib.import_module("tasks_app.migrations.0063_passwords_of_tokens").bind(apps, None)
    assert robot.get("tasks/").status_code == 200


def test_a_superuser_made_by_a_command_is_an_act(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", NEW)
    text_of("createsuperuser", "--noinput", "--username", "ada", "--email", "", "--operator", "ops")
    act = Act.objects.get()
    assert (act.operator, act.door, act.verb, act.name) == ("ops", "command", "make", "ada")
    assert (act.object_id, act.after) == (str(User.objects.get().pk), '{"is_superuser":true}')
    User.objects.create_user("eve")
    assert Act.objects.count() == 1, "no other account is recorded as made by the command"


@pytest.mark.parametrize(
    ("password", "sentence"),
    [
        ("short", "It must contain at least 12 characters."),
        ("a-longer-ada", "too similar to the username"),
        ("", "It must contain at least 12 characters."),
    ],
)
def test_a_superuser_of_a_script_has_a_password_as_others_have(
    password: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", password)
    failed = run("createsuperuser", "--noinput", "--username", "longer-ada", "--email", "")
    assert "DJANGO_SUPERUSER_PASSWORD is refused: " in failed.errors
    assert sentence in failed.errors
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "name", ["ada", "ADA", "\uff21da"]
)  # The last one is a wide A, which Django stores as a usual one.
def test_a_superuser_has_a_name_that_no_other_operator_has(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    User.objects.create_user("ada")
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", NEW)
    failed = run("createsuperuser", "--noinput", "--username", name, "--email", "")
    assert "already" in failed.errors
    assert User.objects.count() == 1


def test_a_superuser_of_a_script_without_a_password_cannot_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_SUPERUSER_PASSWORD", raising=False)
    text_of("createsuperuser", "--noinput", "--username", "ada", "--email", "")
    assert not User.objects.get().has_usable_password()
