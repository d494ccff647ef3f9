"""Forms of the admin that make rows: what they store, what they refuse, and which tenants they take."""

import re
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.models import Act, ApiKey, Principal, RateLimit, ServiceAccount, Tenant
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import operator

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
LIMIT = {"tenant": "acme", "principal": "", "per_minute": "600", "burst": "", "reason": "a test"}
ISSUER = "https://id.example.com"
ROBOT = {"issuer": ISSUER, "subject": "robot-7", "principal": "robot", "tenant": "acme"}
ACCOUNT = ROBOT | {"scopes": "tasks:read", "language": "", "reason": "a test"}


class Form(NamedTuple):
    """A form with values that it takes, and the verb of its acts."""

    model: Any
    values: dict[str, str]
    verb: str


FORMS = [Form(RateLimit, LIMIT, "set"), Form(ServiceAccount, ACCOUNT, "make")]


@pytest.fixture(autouse=True)
def _issuer(settings: Any) -> None:
    settings.A2A_ISSUERS = {ISSUER: {"audience": "taskdesk", "tenant": "acme"}}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def place(model: Any, page: str = "add") -> str:
    return reverse(f"admin:tasks_app_{model._meta.model_name}_{page}")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.model._meta.label))
def test_a_form_stores_a_row_and_records_the_act(form: Form, olga: Principal) -> None:
    client = browser(operator(ADMINISTRATOR, reach=NamedReach(tenants=["acme"])))
    assert place(form.model) in client.get(place(form.model, "changelist")).content.decode()
    answer = client.post(place(form.model), form.values)
    assert (answer.status_code, answer.headers["Location"]) == (302, place(form.model, "changelist"))
    row = form.model.objects.get()
    act = Act.objects.get(verb=form.verb, kind=form.model._meta.verbose_name)
    assert (act.reason, act.door) == ("a test", "admin")
    assert str(row) in client.get(place(form.model, "changelist")).content.decode()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.model._meta.label))
@pytest.mark.parametrize("role", [VIEWER, OPERATOR])
def test_a_form_needs_the_permission_to_add(form: Form, role: str, olga: Principal) -> None:
    client = browser(operator(role))
    assert place(form.model) not in client.get(place(form.model, "changelist")).content.decode()
    assert client.get(place(form.model)).status_code == 403
    assert client.post(place(form.model), form.values).status_code == 403
    assert not form.model.objects.exists()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.model._meta.label))
@pytest.mark.parametrize("tenant", ["elsewhere", "not-yet-there"])
def test_a_form_refuses_tenants_beyond_the_reach(form: Form, tenant: str, olga: Principal) -> None:
    Tenant.objects.create(name="elsewhere")
    client = browser(operator(ADMINISTRATOR, reach=NamedReach(tenants=["acme"])))
    assert "elsewhere" not in client.get(place(form.model)).content.decode()
    answer = client.post(place(form.model), form.values | {"tenant": tenant})
    assert f"The tenant {tenant} is not one of yours." in answer.content.decode()
    assert not form.model.objects.exists()
    assert not Tenant.objects.filter(name="not-yet-there").exists()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.model._meta.label))
def test_an_operator_of_some_agents_makes_no_row_of_a_tenant(form: Form, olga: Principal) -> None:
    client = browser(operator(ADMINISTRATOR, reach=NamedReach(tenants=["acme"], agents=["echo"])))
    assert "ask an operator who sees every agent." in client.post(place(form.model), form.values).content.decode()
    assert not form.model.objects.exists()


def test_a_limit_of_a_principal_is_set_in_place_of_the_former(olga: Principal) -> None:
    client = browser(operator(ADMINISTRATOR))
    for burst in ("7", ""):
        client.post(place(RateLimit), LIMIT | {"principal": "olga", "per_minute": "0", "burst": burst})
    row = RateLimit.objects.get()
    assert (row.principal, row.per_minute, row.burst) == (olga, 0, None)


@pytest.mark.parametrize(
    ("model", "values", "sentence"),
    [
        (RateLimit, LIMIT | {"per_minute": "-1"}, "greater than or equal to 0"),
        (RateLimit, LIMIT | {"burst": "0"}, "greater than or equal to 1"),
        (RateLimit, LIMIT | {"principal": "ghost"}, "has no principal"),
        (RateLimit, LIMIT | {"tenant": "a\0b"}, "Null characters"),
        (ServiceAccount, ACCOUNT | {"issuer": "https://other"}, "A2A_ISSUERS has no issuer"),
        (ServiceAccount, ACCOUNT | {"issuer": CERTIFICATE}, "begins with one of sha256:"),
        (ServiceAccount, ACCOUNT | {"language": "klingon"}, "not one of the available choices"),
        (ServiceAccount, ACCOUNT | {"tenant": "admin"}, "cannot be called"),
    ],
)
def test_a_form_says_what_is_wrong(model: Any, values: dict[str, str], sentence: str, olga: Principal) -> None:
    answer = browser(operator(ADMINISTRATOR)).post(place(model), values)
    assert answer.status_code == 200
    assert sentence in answer.content.decode()
    assert not model.objects.exists()


def test_a_key_is_bound_to_networks(olga: Principal) -> None:
    client = browser(operator(ADMINISTRATOR))
    key = {"principal": "olga", "tenant": "acme", "scopes": "tasks:read"}
    page = client.post(place(ApiKey), key | {"networks": "10.1.0.0/16 2001:db8::/32"}).content.decode()
    assert re.search(r"<bdi>tdk_[\w-]+</bdi>", page)
    assert ApiKey.objects.get().networks == "10.1.0.0/16 2001:db8::/32"
    assert "errorlist" in client.post(place(ApiKey), key | {"networks": "10.1.0.0/99"}).content.decode()
    assert ApiKey.objects.count() == 1
