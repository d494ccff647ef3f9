"""The steps of a client that gets tokens by a code and by a refresh token."""

from urllib.parse import parse_qs, urlsplit

import httpx
from authlib.common.security import generate_token

from tests.oauth.browser import Browser
from tests.oauth.conftest import REDIRECT, Site

VERIFIER = generate_token(64)


def address(site: Site, name: str = "app", redirect: str = REDIRECT, **more: str) -> str:
    """Return the address that the client library opens in the browser."""
    more |= {"code_verifier": VERIFIER, "state": "s"}
    with site.client(name, redirect_uri=redirect, code_challenge_method="S256") as client:
        return str(client.create_authorization_url(f"{site.url}/oauth2/authorize", **more)[0])


def query_of(answer: httpx.Response) -> dict[str, str]:
    """Return the parameters with which the browser returns to the client."""
    assert answer.status_code == 302, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def code(site: Site, browser: Browser, name: str = "app", **more: str) -> str:
    return query_of(browser.approve(address(site, name, **more)))["code"]


def exchange(site: Site, code: str, name: str = "app", **more: str) -> httpx.Response:
    fields = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER} | more
    return site.form(name, "/oauth2/token", grant_type="authorization_code", **fields)


def refresh(site: Site, token: str, name: str = "app", **more: str) -> httpx.Response:
    return site.form(name, "/oauth2/token", grant_type="refresh_token", refresh_token=token, **more)


def is_active(site: Site, token: str) -> bool:
    return bool(site.form("app", "/oauth2/introspect", token=token).json()["active"])


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]
