"""Answers of pages whose session of the database takes no writes, or has ended within a transaction."""

import pytest
from django.db import InternalError
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from tasks_app.api.problems import answer_problem
from tasks_app.oauth.outages import answer_outages
from tasks_app.transports.pages import fail


class Cause(Exception):
    """An error of the database, as its driver raises it."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__()
        self.sqlstate = sqlstate


@pytest.mark.parametrize("sqlstate", ["25006", "25P03"], ids=["read-only", "stalled"])
def test_a_page_whose_session_is_spent_is_503_at_every_door(sqlstate: str) -> None:
    request = RequestFactory().get("/")

    def view(request: HttpRequest) -> HttpResponse:
        raise InternalError from Cause(sqlstate)

    assert answer_outages(view)(request).status_code == 503
    with pytest.raises(InternalError) as raised:
        view(request)
    problem = answer_problem(raised.value, {"request": request})
    assert problem is not None
    assert (problem.status_code, "Retry-After" in problem.headers) == (503, True)
    try:
        view(request)
    except InternalError:
        assert fail(request).status_code == 503


def test_another_internal_error_of_the_database_is_a_fault() -> None:
    request = RequestFactory().get("/")

    def view(request: HttpRequest) -> HttpResponse:
        raise InternalError from Cause("25P02")

    with pytest.raises(InternalError) as raised:
        answer_outages(view)(request)
    assert answer_problem(raised.value, {"request": request}) is None
    try:
        view(request)
    except InternalError:
        assert fail(request).status_code == 500
