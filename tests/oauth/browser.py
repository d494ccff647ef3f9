"""A browser that fills in the pages of the server, as a person does."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx

FIELD = re.compile(r'<input type="hidden" name="([^"]+)"(?: value="([^"]*)")?')


class Browser:
    """A browser with its cookies."""

    def __init__(self, client: httpx.Client, password: str) -> None:
        self.client = client
        self.password = password

    def approve(self, url: str, user: str = "ada", *, allow: bool = True, **changes: str) -> httpx.Response:
        """Open the page, log in if it asks for that, and press a button. Return the last answer.

        `changes` are fields of the form that the person changes by hand.
        """
        page = self.open(url, user)
        if page.status_code != 200:
            return page
        fields = hidden_fields(page.text) | changes | ({"allow": "Approve"} if allow else {})
        return self.client.post(page.request.url, data=fields, headers={"Referer": str(page.request.url)})

    def open(self, url: str, user: str = "ada") -> httpx.Response:
        """Return the page, after a login and a proof if it asks for them."""
        page = self.client.get(url)
        while page.status_code == 302 and self._is_ours(page):
            page = self.client.get(page.headers["Location"])
            if page.status_code != 200 or not page.request.url.path.endswith(("/login/", "/proof/")):
                continue
            login: dict[str, Any] = hidden_fields(page.text) | {"username": user, "password": self.password}
            page = self.client.post(page.request.url, data=login, headers={"Referer": str(page.request.url)})
        return page

    def submit(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of the admin, with its hidden fields."""
        page = self.open(path)
        return self.client.post(path, data=hidden_fields(page.text) | fields, headers={"Referer": str(page.url)})

    def send(self, path: str, **members: Any) -> httpx.Response:
        """Send JSON to the operators' API."""
        token = hidden_fields(self.open("/admin/password_change/").text)["csrfmiddlewaretoken"]
        headers = {"X-CSRFToken": token, "Referer": str(self.client.base_url)}
        return self.client.post(path, json=members, headers=headers)

    def _is_ours(self, page: httpx.Response) -> bool:
        return not urlsplit(page.headers["Location"]).netloc


def hidden_fields(page: str) -> dict[str, str]:
    """Return the hidden fields of the form in the page."""
    return {name: unescape(value) for name, value in FIELD.findall(page)}
