"""The OAuth server switched off, switched on later, and without its package."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.conftest import ROOT
from tests.support.servers import COMMAND_SECONDS

ISSUER = "https://id.example.com/realms/main"
OFF = """
import sys, django
django.setup()
import config.urls
print([name for name in sys.modules if name.startswith(("oauth2_provider", "oauthlib"))])
"""
APPROVAL = """
import django
django.setup()
from django.contrib.auth.models import User
from django.test import Client
from django.conf import settings
browser, place = Client(), "/oauth2/authorize?client_id=x"
browser.force_login(User.objects.create_superuser("ada", password="x"))
print(browser.get(place, follow=True).request["PATH_INFO"])
settings.A2A_SECOND_FACTOR = False
session = browser.session
session["proved"] = 0
session.save()
for send in (browser.get, browser.post):
    print(send(place, follow=True).request["PATH_INFO"])
proved = browser.post("/admin/proof/", {"password": "x", "next": place})
print(proved["Location"], browser.get(proved["Location"]).status_code)
"""
APPROVED = """
import django
django.setup()
from django.contrib.auth.models import User
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from tasks_app import clock
from tasks_app.models import OAuthClient
from tasks_app.oauth import clients
from tasks_app.operators.audit import COMMAND, Operator
redirect = "https://app.example/callback"
for name in ("ada", "bob"):
    wish = clients.NewClient(
        name=name, principal=name, scopes="tasks:read", grant="authorization-code", redirect_uris=[redirect]
    )
    client, _ = clients.add(wish, Operator("tests", COMMAND))
    approval = dict(user=User.objects.create_superuser(name, password="x"), application=client)
    Grant.objects.create(code=name, expires=clock.now(), redirect_uri=redirect, **approval)
    first = AccessToken.objects.create(token_checksum=f"1{name}", expires=clock.now(), **approval)
    used = RefreshToken.objects.create(token_checksum=f"1{name}", access_token=first, **approval)
    second = AccessToken.objects.create(
        token_checksum=f"2{name}", expires=clock.now(), source_refresh_token=used, **approval
    )
    RefreshToken.objects.create(token_checksum=f"2{name}", access_token=second, **approval)
"""
REMAINING = """
import django
django.setup()
from oauth2_provider.models import AccessToken, Grant, RefreshToken
for table in (Grant, AccessToken, RefreshToken):
    print(*table.objects.order_by("pk").values_list("user__username", flat=True))
"""
MISSING = """
import sys
sys.modules["oauth2_provider"] = None
sys.argv = ["manage.py", "check"]
from config.manage import main
main()
"""


def run(folder: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"} | more
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        *("oauth2/token", "oauth2/authorize", "oauth2/revoke", "oauth2/introspect"),
        *(".well-known/oauth-authorization-server", ".well-known/oauth-protected-resource"),
    ],
)
def test_switched_off_it_has_no_paths(path: str) -> None:
    assert Client().get(f"/{path}").status_code == 404
    assert Client().post(f"/{path}").status_code == 404


def test_switched_off_nothing_of_it_is_imported(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", OFF)
    assert done.stdout == "[]\n", done.stderr


def test_without_its_package_the_start_ends_with_what_to_install(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", MISSING, A2A_OAUTH="true")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "pip install 'taskdesk[oauth]'" in done.stderr


def test_its_scheme_alone_stops_the_start(tmp_path: Path) -> None:
    done = run(tmp_path, "manage.py", "check", A2A_SCHEMES="oauth,bearer")
    assert done.returncode == 1
    assert "set A2A_OAUTH=true" in done.stderr


def test_a_server_whose_tokens_nothing_takes_does_not_start(tmp_path: Path) -> None:
    done = run(tmp_path, "manage.py", "check", A2A_OAUTH="true", A2A_SCHEMES="bearer,key")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "add oauth to A2A_SCHEMES, or set A2A_OAUTH=false" in done.stderr


@pytest.mark.parametrize(
    ("schemes", "servers"),
    [
        (("oidc",), [ISSUER]),
        (("oauth", "oidc", "key"), ["http://testserver", ISSUER]),
        (("oauth",), ["http://testserver"]),
    ],
    ids=str,
)
def test_the_metadata_of_the_resource_names_all_issuers(schemes: Any, servers: list[str], settings: Any) -> None:
    settings.A2A_SCHEMES, settings.A2A_ISSUERS = schemes, {ISSUER: {"audience": "taskdesk"}}
    for path in ("", "/agents/echo"):
        answer = Client().get(f"/.well-known/oauth-protected-resource{path}")
        assert answer.status_code == 200, answer.content
        assert answer.json()["resource"] == f"http://testserver{path}"
        assert answer.json()["authorization_servers"] == servers


@pytest.mark.slow
def test_it_is_switched_on_later_and_asks_for_the_second_factor_and_a_proof(tmp_path: Path) -> None:
    add = ("manage.py", "a2a", "clients", "add", "robot", "--principal", "olga", "--scopes", "tasks:read")
    assert run(tmp_path, "manage.py", "migrate").returncode == 0
    assert "run manage.py migrate first" in run(tmp_path, *add, A2A_OAUTH="true").stderr
    migrated = run(tmp_path, "manage.py", "migrate", A2A_OAUTH="true")
    assert migrated.returncode == 0, migrated.stderr
    assert "tds_" in run(tmp_path, *add, A2A_OAUTH="true").stdout
    approval = run(tmp_path, "-c", APPROVAL, A2A_OAUTH="true", A2A_SECOND_FACTOR="true")
    pages = ["/admin/second-factor/", "/admin/proof/", "/admin/proof/", "/oauth2/authorize?client_id=x 400"]
    assert approval.stdout.splitlines() == pages, approval.stderr


@pytest.mark.slow
def test_switched_off_approvals_end_with_the_password_of_their_operator(tmp_path: Path) -> None:
    assert run(tmp_path, "manage.py", "migrate", A2A_OAUTH="true").returncode == 0
    approved = run(tmp_path, "-c", APPROVED, A2A_OAUTH="true")
    assert approved.returncode == 0, approved.stderr
    done = run(tmp_path, "manage.py", "a2a", "users", "password", "ada")
    assert done.returncode == 0, done.stderr
    remaining = run(tmp_path, "-c", REMAINING, A2A_OAUTH="true")
    assert remaining.stdout.splitlines() == ["bob", "bob bob", "bob bob"], remaining.stderr
