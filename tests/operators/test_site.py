"""The site of the admin, however its pages are imported."""

import os
import subprocess
import sys

import pytest

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
