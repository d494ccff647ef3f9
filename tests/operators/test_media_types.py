"""The operators' API, with media types whose parameters cannot be read."""

import pytest
from django.test import Client, RequestFactory
from django.urls import resolve

from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
PARAMETERS = ["a*=nowhere''x", "a*=x; a*1=y"]


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("body", [b"", b"{}"])
def test_a_body_whose_media_type_cannot_be_read_is_refused(parameter: str, body: bytes) -> None:
    robot = program(ADMINISTRATOR)
    request = RequestFactory().post("/api/v1/keys/", body, content_type="application/json", headers=robot.headers)
    request.META["CONTENT_TYPE"] = f"application/json; {parameter}"
    view, arguments, keywords = resolve(request.path)
    assert view(request, *arguments, **keywords).status_code == 415


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_an_accept_that_cannot_be_read_is_answered_in_json(parameter: str) -> None:
    robot = program(ADMINISTRATOR)
    headers = robot.headers | {"Accept": f"text/html; {parameter}, application/json"}
    answer = Client().get("/api/v1/keys/", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
