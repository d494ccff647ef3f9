"""U+0000, which PostgreSQL refuses to search for: every page and every resource treats it as a value of no row."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import program
from tests.transports.admin.pages import registered

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
NULL = "a\0b"
PAGES = list(registered())


@pytest.fixture
def ada(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada"))
    return client


@pytest.mark.parametrize("model", PAGES, ids=lambda model: model._meta.label)
def test_a_list_of_the_admin_finds_no_row_with_a_null_character(model: Any, ada: Client) -> None:
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    plain = ada.get(address)
    assert plain.status_code == 200
    filters = [each.parameter_name for each in plain.context["cl"].filter_specs if hasattr(each, "parameter_name")]
    for name in ["q", *filters]:
        answer = ada.get(f"{address}?{urlencode({name: NULL})}", follow=True)
        assert answer.status_code == 200, name
        if name in filters:
            assert len(answer.context["cl"].result_list) == 0, name


@pytest.mark.parametrize("model", PAGES, ids=lambda model: model._meta.label)
@pytest.mark.parametrize("view", ["change", "history", "delete"])
def test_a_page_of_the_admin_with_a_null_character_is_not_found(model: Any, view: str, ada: Client) -> None:
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=["KEY"])
    answer = ada.get(address.replace("KEY", "a%00b"))
    leads_back = view == "change" and model._meta.app_label == "tasks_app"
    assert answer.status_code in ((302, 403, 404) if leads_back else (403, 404))


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.segment)
def test_a_resource_has_no_such_row_and_takes_no_such_text(resource: Any) -> None:
    robot = program(ADMINISTRATOR)
    assert robot.get(f"{resource.segment}/a%00b/").status_code == 404
    assert robot.get(f"{resource.segment}/", find=NULL).status_code == 400
    for name, verb in resource.verbs().items():
        place = "" if name == "create" else f"{name.replace('_', '-')}/"
        path = f"{resource.segment}/a%00b/{place}" if verb.one else f"{resource.segment}/{place}"
        answer = robot.post(path, **{NULL: NULL})
        assert answer.status_code in (400, 404), (name, answer.content)
