"""The limit of wrong secrets by address."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from tasks_app.limits import strangers
from tasks_app.oauth.limits import limit_wrong


@pytest.fixture(autouse=True)
def _no_failures() -> Iterator[None]:
    strangers.failures.clear()
    yield
    strangers.failures.clear()


def post(answer: HttpResponse, peer: str = "192.0.2.1") -> HttpResponse:
    def view(request: HttpRequest) -> HttpResponse:
        return answer

    response: HttpResponse = limit_wrong(view)(RequestFactory().post("/oauth2/token", REMOTE_ADDR=peer))
    return response


def test_an_address_with_wrong_secrets_has_to_wait_and_others_do_not(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 4
    right, wrong = HttpResponse("{}"), HttpResponse('{"error": "invalid_client"}', status=401)
    used = HttpResponse('{"error": "invalid_grant"}', status=400)
    unwise = HttpResponse('{"error": "invalid_scope"}', status=400)
    assert [post(answer).status_code for answer in (right, unwise, unwise, unwise, unwise, unwise)] == [200] + [400] * 5
    assert [post(answer).status_code for answer in (wrong, used, wrong, used)] == [401, 400, 401, 400]
    refused = post(right)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert b"wait" in refused.content.lower()
    assert post(right, "192.0.2.2").status_code == 200
