"""An operator in front of the admin of a running server, by HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.support.servers import NO_TLS


@contextmanager
def logged_in(url: str, name: str, password: str) -> Iterator[httpx.Client]:
    """Give a client with the session of an operator."""
    with httpx.Client(base_url=url, verify=NO_TLS, timeout=60, follow_redirects=True) as http:
        http.get("/admin/login/")
        form = {"username": name, "password": password, "csrfmiddlewaretoken": http.cookies["csrftoken"]}
        page = http.post("/admin/login/", params={"next": "/admin/"}, data=form)
        assert page.url.path == "/admin/", page.text
        yield http
