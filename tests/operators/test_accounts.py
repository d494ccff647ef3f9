"""Service accounts for operators: registered, disabled and limited, by command, in the admin and as JSON."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app.api.problems import refuse_by
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.models import Act, Principal, ServiceAccount, Tenant
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tests.operators.people import NamedReach, operator, program
from tests.support.commands import printed, run
from tests.transports.admin.pages import messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ISSUER = "https://id.example.com"
ACCOUNT = ("--principal", "olga", "--tenant", "acme")


@pytest.fixture(autouse=True)
def _issuer(settings: Any) -> None:
    settings.A2A_ISSUERS = {ISSUER: {"audience": "taskdesk"}}


@pytest.fixture
def account(olga: Principal) -> ServiceAccount:
    return ServiceAccount.objects.create(issuer=ISSUER, subject="robot-7", principal=olga, scopes="tasks:read")


def verbs() -> list[tuple[str, str]]:
    return list(Act.objects.filter(kind="service account").order_by("id").values_list("verb", "reason"))


def test_the_commands_add_list_disable_enable_and_limit() -> None:
    (line,) = printed("a2a", "accounts", "add", ISSUER, "robot-7", *ACCOUNT, "--scopes", "tasks:read", "--reason", "ci")
    assert (line["issuer"], line["subject"], line["principal"], line["tenant"]) == (ISSUER, "robot-7", "olga", "acme")
    assert (line["scopes"], line["disabled_at"], line["not_before"]) == ("tasks:read", None, None)
    assert printed("a2a", "accounts", "list") == [line]
    number = str(line["id"])
    (disabled,) = printed("a2a", "accounts", "disable", number, "--reason", "lost")
    assert disabled["disabled_at"]
    (enabled,) = printed("a2a", "accounts", "enable", number)
    assert enabled == line
    (limited,) = printed("a2a", "accounts", "not-before", number)
    assert limited["not_before"]
    (earlier,) = printed("a2a", "accounts", "not-before", number, "--time", "2020-01-01T00:00:00Z")
    assert earlier == limited, "a time that was refused stays refused"
    (device,) = printed("a2a", "accounts", "add", CERTIFICATE, "dns:robot.example.com", *ACCOUNT)
    assert (device["issuer"], device["scopes"]) == (CERTIFICATE, "*")
    assert verbs() == [("make", "ci"), ("disable", "lost"), ("enable", ""), ("not-before", ""), ("make", "")]


def test_the_scopes_of_an_account_are_changed_by_each_door(account: ServiceAccount) -> None:
    number, chief = str(account.pk), program(ADMINISTRATOR)
    (line,) = printed("a2a", "accounts", "change", number, "--scopes", "tasks:read  tasks:cancel", "--reason", "more")
    assert line["scopes"] == "tasks:read tasks:cancel"
    unchanged = run("a2a", "accounts", "change", number, "--scopes", "tasks:read tasks:cancel")
    assert (unchanged.code, "limited to these scopes already" in unchanged.errors) == (0, True)
    assert chief.post(f"accounts/{number}/change/", scopes="tasks:write").json()["scopes"] == "tasks:write"
    assert chief.post(f"accounts/{number}/change/", scopes="tasks:write").status_code == 409
    assert chief.post(f"accounts/{number}/change/").status_code == 400
    browser, place = Client(), reverse("admin:tasks_app_serviceaccount_changelist")
    browser.force_login(operator(ADMINISTRATOR))
    form = {"action": "change_scopes", "_selected_action": [number], "post": "yes", "reason": "less"}
    assert "separate scopes by spaces" in browser.post(place, form | {"scopes": "a,b"}).content.decode()
    for _ in range(2):
        page = browser.post(place, form | {"scopes": "tasks:read"}, follow=True).content.decode()
    assert "limited to these scopes already" in page
    account.refresh_from_db()
    assert account.scopes == "tasks:read"
    acts = Act.objects.filter(verb="change", kind="service account").order_by("id")
    acts = acts.values_list("verb", "before", "after", "reason")
    assert [(verb, json.loads(before), json.loads(after), reason) for verb, before, after, reason in acts] == [
        ("change", {"scopes": "tasks:read"}, {"scopes": "tasks:read tasks:cancel"}, "more"),
        ("change", {"scopes": "tasks:read tasks:cancel"}, {"scopes": "tasks:write"}, ""),
        ("change", {"scopes": "tasks:write"}, {"scopes": "tasks:read"}, "less"),
    ]


def test_the_act_of_making_an_account_names_its_principal() -> None:
    printed("a2a", "accounts", "add", ISSUER, "robot-7", *ACCOUNT)
    after = json.loads(Act.objects.get(verb="make").after)
    assert (after["principal"], after["tenant"]) == ("olga", "acme")


def test_a_command_that_makes_no_sense_says_why(account: ServiceAccount) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    certificate = ServiceAccount.objects.create(issuer=CERTIFICATE, subject="dn:CN=x", principal=account.principal)
    for words, sentence in (
        (("add", "https://other", "x", *ACCOUNT), "A2A_ISSUERS has no issuer 'https://other' here"),
        (("add", CERTIFICATE, "robot", *ACCOUNT), "begins with one of sha256:, uri:, dns:, email:, dn:"),
        (("add", CERTIFICATE, "dns:", *ACCOUNT), "a name must follow dns:"),
        (("add", CERTIFICATE, "dn: ", *ACCOUNT), "a name must follow dn:"),
        (("add", CERTIFICATE, f"sha256:{'ab' * 31}", *ACCOUNT), "64 hexadecimal digits"),
        (("add", CERTIFICATE, f"sha256:{'AB' * 32}", *ACCOUNT), "in lower case"),
        (("add", CERTIFICATE, f"sha256:{':'.join(['ab'] * 32)}", *ACCOUNT), "without colons"),
        (("add", ISSUER, "", *ACCOUNT), "1 to 255 printable characters"),
        (("add", ISSUER, "robot-7", *ACCOUNT), f"already; its id is {account.pk}"),
        (("add", ISSUER, "x", *ACCOUNT, "--language", "klingon"), "pinned to 'klingon'"),
        (("disable", "0"), "There is no account with the id 0"),
        (("not-before", str(account.pk), "--time", later), "5 minutes ahead"),
        (("not-before", str(certificate.pk)), "disable it instead"),
    ):
        failed = run("a2a", "accounts", *words)
        assert failed.lines == []
        assert failed.code != 0
        assert sentence.lower() in failed.errors.lower(), failed.errors
    assert verbs() == []


def test_a_thumbprint_of_64_digits_is_registered() -> None:
    printed("a2a", "accounts", "add", CERTIFICATE, f"sha256:{'0a' * 32}", *ACCOUNT)
    assert ServiceAccount.objects.get().subject == f"sha256:{'0a' * 32}"


def test_the_api_does_the_same_within_the_reach_and_the_role(account: ServiceAccount) -> None:
    robot = program(OPERATOR)
    (line,) = robot.get("accounts/").json()["results"]
    assert (line["id"], line["subject"], line["principal"]) == (account.pk, "robot-7", "olga")
    assert robot.post(f"accounts/{account.pk}/disable/").status_code == 403, "an operator sees them only"
    chief = program(ADMINISTRATOR)
    body = {"issuer": ISSUER, "subject": "robot-8", "principal": "olga", "tenant": "acme"}
    new = chief.post("accounts/", **body, reason="a trial")
    assert (new.status_code, new.json()["scopes"]) == (201, "*")
    assert chief.post("accounts/", **body).status_code == 400
    assert chief.post("accounts/", **body | {"issuer": "https://other"}).status_code == 400
    place = f"accounts/{new.json()['id']}"
    assert chief.post(f"{place}/disable/").json()["disabled_at"]
    assert chief.post(f"{place}/disable/").status_code == 409
    assert chief.post(f"{place}/enable/").json()["disabled_at"] is None
    assert chief.post(f"{place}/not-before/").json()["not_before"]
    assert chief.post(f"{place}/not-before/", time="2020-01-01T00:00:00Z").status_code == 409
    assert [one["subject"] for one in chief.get("accounts/?subject=robot-8").json()["results"]] == ["robot-8"]
    assert verbs() == [("make", "a trial"), ("disable", ""), ("enable", ""), ("not-before", "")]


@pytest.mark.parametrize(
    ("issuer", "subject", "tenant", "code"),
    [
        (ISSUER, "robot-8", "default", 403),
        (CERTIFICATE, "dns:robot.example.com", "acme", 403),
        (ISSUER, "robot-8", "acme", 201),
    ],
    ids=["of another tenant", "a certificate", "their own"],
)
def test_operators_of_a_tenant_register_only_subjects_that_belong_to_it(
    olga: Principal, settings: Any, issuer: str, subject: str, tenant: str, code: int
) -> None:
    settings.A2A_ISSUERS = {ISSUER: {"audience": "taskdesk", "tenant": tenant}}
    reach = NamedReach(tenants=["acme"])
    chief, body = program(ADMINISTRATOR, reach=reach), {"issuer": issuer, "principal": "olga", "tenant": "acme"}
    assert chief.post("accounts/", **body, subject=subject).status_code == code
    browser = Client()
    browser.force_login(operator(ADMINISTRATOR, reach=reach))
    form = body | {"subject": f"{subject}.two", "scopes": "tasks:read"}
    page = browser.post(reverse("admin:tasks_app_serviceaccount_add"), form, follow=True).content.decode()
    assert ("ask an operator who sees every tenant" in page) is (code == 403)
    assert ServiceAccount.objects.count() == (2 if code == 201 else 0)


def test_the_id_of_an_account_of_another_tenant_is_not_named(account: ServiceAccount, settings: Any) -> None:
    settings.A2A_ISSUERS = {ISSUER: {"audience": "taskdesk", "tenant": "acme"}}
    foreign, _ = Tenant.objects.get_or_create(name="beta")
    other = Principal.objects.create(tenant=foreign, name="bert")
    ServiceAccount.objects.create(issuer=ISSUER, subject="robot-9", principal=other)
    chief = program(ADMINISTRATOR, reach=NamedReach(tenants=["acme"]))
    body = {"issuer": ISSUER, "principal": "olga", "tenant": "acme"}
    for subject, end in ((account.subject, f"already; its id is {account.pk}."), ("robot-9", f"of {ISSUER} already.")):
        answer = chief.post("accounts/", **body, subject=subject)
        assert (answer.status_code, end in answer.content.decode()) == (400, True), answer.content


def test_a_refusal_keeps_the_capitals_of_its_sentence() -> None:
    refusal = refuse_by(ValueError("the client of Olga was revoked by A2A"))
    assert refusal.detail == "The client of Olga was revoked by A2A."


def test_the_admin_disables_enables_and_limits_accounts(account: ServiceAccount) -> None:
    viewer, chief = Client(), Client()
    viewer.force_login(operator(VIEWER))
    chief.force_login(operator(ADMINISTRATOR))
    place = reverse("admin:tasks_app_serviceaccount_changelist")
    assert b"robot-7" in viewer.get(place).content
    for action in ("disable", "enable", "refuse_former_tokens"):
        form = {"action": action, "_selected_action": [account.pk]}
        viewer.post(place, form | {"post": "yes", "reason": ""})
        assert account.subject in chief.post(place, form).content.decode(), "it asks first"
        chief.post(place, form | {"post": "yes", "reason": "a test"}, follow=True)
    account.refresh_from_db()
    assert account.disabled_at is None
    assert account.not_before is not None
    assert verbs() == [("disable", "a test"), ("enable", "a test"), ("not-before", "a test")]


def test_the_admin_says_that_a_certificate_has_no_tokens(account: ServiceAccount) -> None:
    device = ServiceAccount.objects.create(issuer=CERTIFICATE, subject="dn:CN=x", principal=account.principal)
    client = Client()
    client.force_login(operator(ADMINISTRATOR))
    form = {"action": "refuse_former_tokens", "_selected_action": [device.pk, account.pk], "post": "yes"}
    answer = client.post(reverse("admin:tasks_app_serviceaccount_changelist"), form, follow=True)
    assert messages_of(answer) == [
        "Refuse former tokens: 1 service account, 1 was not changed.",
        f"{device}: An account of a certificate has no tokens: disable it instead.",
    ]
    device.refresh_from_db()
    assert (device.not_before, verbs()) == (None, [("not-before", "")])
