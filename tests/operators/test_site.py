"""The site of the admin: it has its pages however they are imported, and none that Django adds but no page uses."""

import os
import subprocess
import sys

import pytest
from django.test import Client
from django.urls import reverse

from tests.conftest import ROOT

FIRST = ("admin.autodiscover()", "import tasks_app.admin", "import config.urls")


@pytest.mark.parametrize("statement", FIRST)
def test_the_pages_are_registered_whichever_import_comes_first(statement: str) -> None:
    code = (
        f"import django; django.setup(); from django.contrib import admin; {statement}; admin.autodiscover(); "
        "print(type(admin.site._wrapped).__module__, 'tasks_app.Task' in {m._meta.label for m in admin.site._registry})"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["tasks_app.operators.site", "True"], done.stderr


@pytest.mark.django_db
@pytest.mark.storage
@pytest.mark.parametrize(
    ("model", "field", "term"),
    [("tenant", "principals", ""), ("task", "owner", "a\0b"), ("event", "task", ""), ("userlink", "user", "a")],
)
def test_no_page_suggests_rows_because_no_form_asks(model: str, field: str, term: str, admin_client: Client) -> None:
    """The page of Django's own fails for the first two, and counts all tasks for the third."""
    values = {"app_label": "tasks_app", "model_name": model, "field_name": field, "term": term}
    assert admin_client.get(reverse("admin:autocomplete"), values).status_code == 404
