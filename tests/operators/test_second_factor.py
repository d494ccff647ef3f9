"""The second factor: no page of the admin without it, how it is enrolled, given, limited and reset."""

import html
import importlib
import json
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from tasks_app.models import Act, OperatorDevice, WrongLogins
from tasks_app.operators import second_factor, site, tokens
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.sealing import unseal
from tasks_app.transports.headers import POLICY
from tests.operators.codes import PAGE, code_of, enrolled, forget_wrong_codes
from tests.operators.people import OPS, operator
from tests.support.commands import printed
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("whole_step")]
PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def required(settings: Any) -> None:
    settings.A2A_SECOND_FACTOR = True


@pytest.fixture
def ada() -> User:
    return User.objects.create_superuser("ada", password=PASSWORD)


def visit(user: str = "ada", password: str = PASSWORD) -> Client:
    """Return the client of a user who has given the password."""
    client = Client()
    assert client.post(reverse("admin:login"), {"username": user, "password": password}).status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("admin:index")).status_code == 200


PAGES = ("/admin/", "/admin/tasks_app/task/", "/admin/auth/user/", "/admin/password_change/", "/admin/no/such/page")


@pytest.mark.parametrize("page", PAGES)
def test_a_password_alone_opens_no_page_but_that_of_the_second_factor(ada: User, page: str) -> None:
    client = visit()
    answer = client.get(page, follow=True)
    assert answer.redirect_chain[-1][0].startswith(PAGE)
    assert client.post(page, {"action": "x"}).status_code == 302
    assert client.get("/api/v1/tasks/").status_code == 401


def test_a_session_from_before_must_give_it_too(ada: User, settings: Any) -> None:
    settings.A2A_SECOND_FACTOR = False
    client = visit()
    assert is_in(client)
    settings.A2A_SECOND_FACTOR = True
    assert not is_in(client)
    enrolled(client)
    assert is_in(client)


def test_a_first_login_enrols_with_a_code_and_shows_recovery_codes_once(ada: User) -> None:
    client = visit()
    page = client.get(f"{PAGE}?next=/admin/tasks_app/task/")
    text = page.content.decode()
    key = unseal(client.session["second_factor_key"])
    assert second_factor.spell_key(key) in text
    assert second_factor.spell_key(key) in client.get(PAGE).content.decode()
    assert second_factor.spell_key(key) not in visit().get(PAGE).content.decode()
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "no-store" in page.headers["Cache-Control"]
    assert "<svg" in text
    assert not re.search(r"""\sstyle=|<style|<script(?![^>]*src=)|\son\w+=""", text)
    wrong = client.post(PAGE, {"code": "000000" if code_of(key) != "000000" else "111111"})
    assert "not right" in wrong.content.decode()
    assert not second_factor.has_device(ada)
    answer = client.post(PAGE, {"code": code_of(key), "next": "/admin/tasks_app/task/"}).content.decode()
    codes = re.findall(r'<li class="td-mono">([0-9a-f]{10})</li>', answer)
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    assert 'href="/admin/tasks_app/task/"' in answer
    assert is_in(client)
    again = client.get(PAGE, follow=True).content.decode()
    assert not any(code in again for code in codes)
    assert not StaticToken.objects.filter(token__in=codes).exists()
    assert Act.objects.get(verb="enrol").name == "ada"


def test_each_login_asks_for_a_code_that_works_once(ada: User) -> None:
    key, _ = enrolled(visit())
    client, thief = visit(), visit()
    assert not is_in(client)
    assert client.post(PAGE, {"code": code_of(key, 1), "next": "/admin/auth/user/"}).url == "/admin/auth/user/"
    assert is_in(client)
    assert "not right" in thief.post(PAGE, {"code": code_of(key, 1)}).content.decode()
    assert not is_in(thief)


def test_a_recovery_code_works_once_and_under_a_former_secret(ada: User, settings: Any) -> None:
    _, codes = enrolled(visit())
    client = visit()
    client.post(PAGE, {"code": f" {codes[0].upper()} "})
    assert is_in(client)
    other = visit()
    other.post(PAGE, {"code": codes[0]})
    assert not is_in(other)
    StaticToken.objects.first().device.throttle_reset()
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another secret of enough characters"
    assert second_factor.verify(ada, codes[1])


def test_a_second_device_cannot_be_enrolled_over_the_first(ada: User) -> None:
    thief = visit()
    thief.get(PAGE)
    key = unseal(thief.session["second_factor_key"])
    enrolled(visit())
    assert "not right" in thief.post(PAGE, {"code": code_of(key)}).content.decode()
    assert not is_in(thief)
    assert TOTPDevice.objects.count() == 1
    assert second_factor.enrol(ada, key, code_of(key), OPS) is None


def test_an_enrolment_sent_twice_is_not_called_wrong(ada: User) -> None:
    client = visit()
    assert 'name="enrols"' in client.get(PAGE).content.decode()
    key, _ = enrolled(client)
    form = {"code": code_of(key), "enrols": "yes", "next": "/admin/"}
    assert site.DONE in html.unescape(client.post(PAGE, form, follow=True).content.decode())
    other = visit()
    answer = other.post(PAGE, form).content.decode()
    assert site.ENROLLED in answer
    assert "not right" not in answer
    assert not is_in(other)
    assert other.post(PAGE, {"code": code_of(key, 1)}).status_code == 302


def test_two_enrolments_at_once_show_who_is_second_the_next_step(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = visit()
    client.get(PAGE)
    key = unseal(client.session["second_factor_key"])
    monkeypatch.setattr(site, "_read_key", lambda request: second_factor.enrol(ada, key, code_of(key), OPS) and key)
    answer = client.post(PAGE, {"code": code_of(key), "enrols": "yes"}).content.decode()
    assert site.ENROLLED in answer
    assert "not right" not in answer
    assert "td-qr" not in answer


def test_wrong_codes_lock_the_login_and_a_right_password_gives_no_new_tries(
    ada: User, settings: Any, hand: Hand
) -> None:
    settings.A2A_LOGIN_TRIES = 3
    key, _ = enrolled(visit())
    for _ in range(2):
        assert "not right" in visit().post(PAGE, {"code": "abcdef"}).content.decode()
    client = visit()
    assert "not right" in client.post(PAGE, {"code": "abcdef"}).content.decode()
    forget_wrong_codes()
    assert "wait 30 seconds" in client.post(PAGE, {"code": code_of(key, 1)}).content.decode()
    assert not is_in(client)
    hand.on(seconds=31)
    assert client.post(PAGE, {"code": code_of(key, 1)}).status_code == 302
    assert WrongLogins.objects.get(kind="user").running == 0


def test_a_wrong_code_makes_the_next_one_wait(ada: User, settings: Any) -> None:
    settings.OTP_TOTP_THROTTLE_FACTOR = 3600
    key, _ = enrolled(visit())
    client = visit()
    client.post(PAGE, {"code": "123456" if code_of(key, 1) != "123456" else "654321"})
    assert "not right" in client.post(PAGE, {"code": code_of(key, 1)}).content.decode()
    forget_wrong_codes()
    assert client.post(PAGE, {"code": code_of(key, 1)}).status_code == 302


def test_a_session_ends_with_its_device_and_is_of_its_user(ada: User) -> None:
    client = visit()
    enrolled(client)
    before = client.session.session_key
    assert is_in(client)
    User.objects.create_superuser("eve", password=PASSWORD)
    eve = visit("eve")
    session = eve.session
    session["otp_device_id"] = client.session["otp_device_id"]
    session.save()
    assert not is_in(eve)
    second_factor.reset(ada, OPS)
    assert not is_in(client)
    assert Session.objects.filter(pk=before).exists()


def test_giving_the_code_renames_the_session(ada: User) -> None:
    client = visit()
    before = client.session.session_key
    enrolled(client)
    assert client.session.session_key != before
    assert not Session.objects.filter(pk=before).exists()


def test_a_second_login_in_a_session_needs_a_code_again(ada: User, hand: Hand) -> None:
    client = visit()
    key, _ = enrolled(client)
    hand.on(minutes=16)
    form = reverse("admin:tasks_app_apikey_add")
    assert client.get(form).url.startswith("/admin/proof/")
    assert client.post(reverse("admin:login"), {"username": "ada", "password": PASSWORD}).status_code == 302
    assert client.get(form).status_code == 302, "a password alone is no proof"
    assert not is_in(client)
    assert client.get("/api/v1/tasks/").status_code == 401
    client.post(PAGE, {"code": code_of(key, 1)})
    assert client.get(form).status_code == 200


def test_leaving_needs_no_code(ada: User) -> None:
    client = visit()
    client.post(reverse("admin:logout"))
    assert "_auth_user_id" not in client.session


def test_the_page_leads_to_no_other_server(ada: User) -> None:
    key, _ = enrolled(visit())
    answer = visit().post(PAGE, {"code": code_of(key, 1), "next": "https://evil.example/"})
    assert answer.url == reverse("admin:index")


def test_without_a_login_the_page_shows_nothing() -> None:
    assert Client().get(PAGE).url == reverse("admin:login")
    User.objects.create_user("tom", password=PASSWORD)
    client = Client()
    client.force_login(User.objects.get(username="tom"))
    assert client.get(PAGE).url == reverse("admin:login")


def test_a_command_resets_it_with_an_act_and_revokes_the_tokens(ada: User) -> None:
    user = operator(ADMINISTRATOR, name="bob")
    user.set_password(PASSWORD)
    user.save()
    enrolled(visit("bob"))
    _, token = tokens.make_token(user, "x", 1, OPS)
    (line,) = printed("a2a", "users", "reset-second-factor", "bob", "--reason", "lost phone")
    assert line["second_factor"] is False
    assert tokens.find_token(token) is None
    act = Act.objects.latest("pk")
    assert (act.verb, act.name, act.reason) == ("reset second factor", "bob", "lost phone")
    enrolled(visit("bob"))
    assert printed("a2a", "users", "list", "--limit", "1")[0]["second_factor"] is True


def test_a_token_takes_a_code(ada: User, settings: Any) -> None:
    user = operator(VIEWER, name="bob")
    with pytest.raises(CommandError, match="has no second factor yet"):
        printed("a2a", "operators", "token", "bob")
    user.set_password(PASSWORD)
    user.save()
    key, _ = enrolled(visit("bob"))
    with pytest.raises(CommandError, match="--code must be a code"):
        printed("a2a", "operators", "token", "bob")
    forget_wrong_codes()
    (line,) = printed("a2a", "operators", "token", "bob", "--code", code_of(key, 1))
    assert tokens.find_token(line["token"])


def test_a_user_who_can_have_no_token_is_told_so_before_a_code_is_asked_for(ada: User, settings: Any) -> None:
    operator(VIEWER, name="bob")
    User.objects.filter(username="bob").update(is_active=False)
    for name, sentence in (("ada", "is a superuser"), ("bob", "is not an active operator")):
        with pytest.raises(CommandError, match=sentence):
            printed("a2a", "operators", "token", name)


def test_development_asks_for_no_second_factor(ada: User, settings: Any) -> None:
    settings.A2A_SECOND_FACTOR = False
    client = visit()
    assert is_in(client)
    assert client.get(PAGE).url == reverse("admin:index")


@pytest.mark.parametrize("model", ["totpdevice", "staticdevice"])
def test_no_page_shows_the_key_of_a_device(ada: User, settings: Any, model: str) -> None:
    settings.A2A_SECOND_FACTOR = False
    app = f"otp_{model.removesuffix('device')}"
    assert visit().get(f"/admin/{app}/{model}/").status_code == 404


def test_a_production_without_it_is_warned_of(settings: Any) -> None:
    from tasks_app.checks.production import check_second_factor

    settings.DEVELOPMENT, settings.A2A_SECOND_FACTOR = False, False
    (warning,) = check_second_factor()
    assert warning.id == "a2a.W006"
    settings.A2A_SECOND_FACTOR = True
    assert check_second_factor() == []


def test_no_key_is_stored_in_clear_and_not_in_the_session_either(ada: User) -> None:
    client = visit()
    client.get(PAGE)
    session = str(list(Session.objects.values_list("session_data", flat=True)))
    pending = unseal(client.session["second_factor_key"])
    assert pending not in session + str(dict(client.session))
    key, _ = enrolled(client)
    assert stored_keys() == [key]
    text = str(list(OperatorDevice.objects.values()))
    assert key not in text
    assert second_factor.spell_key(key) not in text


def stored_keys() -> list[str]:
    return [unseal(row.sealed_key) for row in OperatorDevice.objects.all()]


def test_a_key_of_the_version_before_is_sealed_at_its_next_code(ada: User) -> None:
    key = second_factor.new_key()
    TOTPDevice.objects.create(user=ada, name="app", key=key, confirmed=True)
    client = visit()
    assert client.post(PAGE, {"code": code_of(key)}).status_code == 302
    assert is_in(client)
    assert stored_keys() == [key]
    assert TOTPDevice.objects.get().key != key
    assert TOTPDevice.objects.get().last_t > 0, "the code counts as used"
    assert TOTPDevice.objects.count() == 1


def test_the_migration_seals_all_keys_and_back(ada: User) -> None:
    migration = importlib.import_module("tasks_app.migrations.0048_operator_devices")
    key = second_factor.new_key()
    device = TOTPDevice.objects.create(user=ada, name="app", key=key, confirmed=True, last_t=7)
    migration.seal_keys(apps, None)
    assert stored_keys() == [key]
    row = TOTPDevice.objects.get()
    assert (row.pk, row.last_t, row.confirmed) == (device.pk, 7, True)
    assert len(row.key) == 40
    assert row.key != key
    assert second_factor.verify(ada, code_of(key))
    migration.unseal_keys(apps, None)
    assert TOTPDevice.objects.get().key == key


def test_a_changed_secret_key_makes_codes_wrong_and_says_why(
    ada: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    key, _ = enrolled(visit())
    forget_wrong_codes()
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another key, which is long enough for it"
    assert second_factor.verify(ada, code_of(key, 1)) is None
    assert "SECRET_KEY_FALLBACKS" in caplog.text
    settings.SECRET_KEY_FALLBACKS = [former]
    assert second_factor.verify(ada, code_of(key, 1))


def logins() -> list[dict[str, Any]]:
    acts = Act.objects.filter(verb="log in").order_by("id")
    return [json.loads(after) for after in acts.values_list("after", flat=True)]


def test_each_complete_login_is_an_act_and_wrong_ones_are_counts(ada: User, settings: Any) -> None:
    key, codes = enrolled(visit())
    assert logins() == [{"second_factor": "app"}]
    client = visit()
    client.post(PAGE, {"code": "000000" if code_of(key) != "000000" else "111111"})
    assert len(logins()) == 1, "a password alone is no login, and a wrong code neither"
    assert WrongLogins.objects.get(kind="user").total == 1
    client.post(PAGE, {"code": codes[0]})
    assert logins()[1:] == [{"second_factor": "recovery code", "left": second_factor.RECOVERY_CODES - 1}]
    act = Act.objects.filter(verb="log in").latest("id")
    assert (act.operator, act.name, act.peer) == ("ada", "ada", "127.0.0.1")
    settings.A2A_SECOND_FACTOR = False
    visit()
    assert logins()[2:] == [{}]
