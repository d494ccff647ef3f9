"""Pages for browsers: each names what it may load, and holds nothing that this policy would refuse."""

from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import reverse

from tasks_app.transports.headers import HEADERS, POLICY, pages, protect
from tests.conftest import NO_TLS, Server

pytestmark = pytest.mark.django_db


class Refused(HTMLParser):
    """Collects what the policy refuses: inline code and styles, and addresses of other sites."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "style" or (tag == "script" and not given.get("src")) or tag in {"base", "object", "embed"}:
            self.found.append(f"<{tag}>")
        for name, value in attributes:
            if name == "style" or name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.found.append(f"<{tag} {name}={value}>")
            if name in {"src", "action"} and "//" in (value or ""):
                self.found.append(f"<{tag} {name}={value}>")


def refused(content: str) -> list[str]:
    parser = Refused()
    parser.feed(content)
    return parser.found


def addresses(user: User) -> list[str]:
    models = [model._meta for model in admin.site._registry]
    lists = [reverse(f"admin:{model.app_label}_{model.model_name}_changelist") for model in models]
    found = [reverse("admin:index"), reverse("admin:password_change"), "/admin/nothing/here/", *lists]
    return [*found, reverse("admin:auth_user_change", args=[user.pk]), reverse("admin:auth_user_add")]


def test_every_page_of_the_admin_has_the_policy_and_keeps_it(client: Client) -> None:
    signed_out = client.get(reverse("admin:login"))
    user = User.objects.create_superuser("ada", password="a long password")
    client.force_login(user)
    for answer in (signed_out, *(client.get(address, follow=True) for address in addresses(user))):
        shown = answer.content.decode()
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, answer.request
        assert "<html" in shown
        assert refused(shown) == []


def test_the_search_finds_each_element_that_the_policy_refuses() -> None:
    bad = (
        '<script>x</script><style>y</style><p style="a:b" onclick="x()"><a href=" javascript:x">'
        '<script src="https://evil.example/x.js"></script><form action="//evil.example"><base href="/">'
    )
    assert len(refused(bad)) == 8


def test_error_pages_have_the_policy(client: Client) -> None:
    refused = client.post("/admin/login/", {str(number): "" for number in range(2_000)})
    assert (refused.status_code, refused.headers["Content-Security-Policy"]) == (400, POLICY)


@pytest.mark.parametrize("path", ["/admin/", "/api/v1/keys/", "/nothing/here/"])
def test_a_foreign_host_name_is_answered_with_a_sentence(path: str, client: Client, settings: Any) -> None:
    """A call by a name that is not ours is told so, because an operator who begins calls by an address."""
    settings.ALLOWED_HOSTS = ["agents.example"]
    foreign = client.get(path, headers={"host": "127.0.0.1:8000"})
    assert (foreign.status_code, foreign.headers["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert "ALLOWED_HOSTS" in foreign.content.decode()
    assert "agents.example" not in foreign.content.decode()


def test_pages_of_a_real_server_have_the_policy_whichever_handler_gives_them(server: Server) -> None:
    for path, status in (("/admin/login/", 200), ("/nothing/here", 404), ("/.well-known/nothing", 404)):
        answer = httpx.get(server.url + path, verify=NO_TLS, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["Content-Security-Policy"]) == (status, POLICY)
    card = httpx.get(f"{server.url}/.well-known/agent-card.json", verify=NO_TLS)
    assert "Content-Security-Policy" not in card.headers


async def test_the_policy_is_added_under_an_async_handler_too(async_client: AsyncClient) -> None:
    answer = await async_client.get("/admin/login/")
    assert answer.headers["Content-Security-Policy"] == POLICY

    async def view(request: object) -> HttpResponse:
        return HttpResponse("<p>")

    answer = await pages(view)(RequestFactory().get("/"))
    assert answer.headers["Content-Security-Policy"] == POLICY


def test_only_pages_get_a_policy_and_a_page_keeps_its_own() -> None:
    answer = HttpResponse(b"{}", content_type="application/json")
    protect(answer)
    assert "Content-Security-Policy" not in answer.headers
    page = HttpResponse("<p>", headers={"Content-Security-Policy": "default-src 'none'"})
    protect(page)
    assert page.headers["Content-Security-Policy"] == "default-src 'none'"
