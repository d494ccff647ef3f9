"""The answers of the endpoints while the database is away."""

import json

import pytest
from django.db import Error, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from tasks_app.oauth.outages import answer_outages


@pytest.mark.parametrize("error", [OperationalError("database is locked"), InterfaceError("connection already closed")])
def test_a_database_that_is_away_is_503_in_json(error: Error, caplog: pytest.LogCaptureFixture) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        raise error

    answer = answer_outages(view)(RequestFactory().post("/oauth2/token"))
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert answer["Cache-Control"] == "no-store"
    assert json.loads(answer.content)["error"] == "temporarily_unavailable"
    assert str(error) in caplog.text
    assert str(error) not in answer.content.decode()


def test_another_fault_is_left_to_the_server() -> None:
    def view(request: HttpRequest) -> HttpResponse:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        answer_outages(view)(RequestFactory().post("/oauth2/token"))
