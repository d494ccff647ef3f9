"""The query parameters of the operators' lists: a value that no row can have is refused, as commands refuse it."""

from typing import Any

import pytest

from tasks_app.api.resources import RESOURCES
from tasks_app.models import Exchange
from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import program
from tests.support.operators import exchange

pytestmark = [pytest.mark.django_db, pytest.mark.storage]

FEW = [(resource, name) for resource in RESOURCES for name in resource.parameters() if resource.choices_of(name)]


def test_parameters_with_few_values_are_those_of_states_and_kinds() -> None:
    assert {(resource.segment, name) for resource, name in FEW} == {
        ("batches", "state"),
        ("deliveries", "state"),
        ("exchanges", "outcome"),
        ("logins", "kind"),
        ("shared-streams", "state"),
        ("slack-questions", "state"),
        ("tasks", "state"),
        ("workflows", "state"),
    }


@pytest.mark.parametrize(("resource", "name"), FEW, ids=lambda each: getattr(each, "segment", each))
def test_a_value_that_no_row_can_have_is_refused(resource: Any, name: str) -> None:
    robot, path = program(ADMINISTRATOR), f"{resource.segment}/"
    for value in resource.choices_of(name):
        assert robot.get(path, **{name: value}).status_code == 200
    answer = robot.get(path, **{name: "nonsense"})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["where"] == f"/{name}"
    assert error["what"].startswith("must be one of ")
    paths = robot.get("openapi.json").json()["paths"]
    schemas = {each["name"]: each["schema"] for each in paths[f"/api/v1/{path}"]["get"]["parameters"]}
    assert schemas[name]["enum"] == list(resource.choices_of(name))


def test_calls_without_an_answer_have_an_empty_outcome(olga: Any) -> None:
    call, robot = exchange(olga), program(ADMINISTRATOR)
    Exchange.objects.filter(pk=call.pk).update(outcome="")
    (row,) = robot.get("exchanges/", outcome="").json()["results"]
    assert row["id"] == call.pk


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    robot, noon, later = program(ADMINISTRATOR), "2026-11-22T12:00:00Z", "2026-11-22T12:00:01Z"
    assert robot.get("tasks/", since=noon, until=later).status_code == 200
    for since in (noon, later):
        answer = robot.get("tasks/", since=since, until=noon)
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"where": "/since", "what": "must be earlier than until"}]


@pytest.mark.parametrize("value", ["9" * 30, "-1", "x" * 3_000, "\u202e", "1e5", "%"])
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.segment)
def test_any_value_of_a_parameter_has_an_answer(resource: Any, value: str) -> None:
    robot = program(ADMINISTRATOR)
    for name in resource.parameters():
        answer = robot.get(f"{resource.segment}/", **{name: value})
        assert answer.status_code in {200, 400}, (name, answer.content)
        if answer.status_code == 200:
            assert answer.json()["results"] == [], name
