"""REST without HTTP: which route a path means, what its params are, and what an error looks like."""

import json
import re
from typing import Any

import pytest
from msgspec import Struct

from a2a import errors
from a2a.choice import CallError, Endpoint
from a2a.dialects.errors_1_0 import REST_STATUSES
from a2a.dialects.rest_0_x import PROTO
from a2a.envelopes import bare
from a2a.envelopes.bare import NoSuchVerb, Place, form, params_of
from a2a.errors import InvalidParams, MethodNotFound
from a2a.language import Language, Rest, entry
from a2a.languages import ALL
from a2a.requests import SubscribeToTask
from tests.protocol.speaking import OLD_REST, REST, WAITS, member

FAMILIES = {"1.0": REST, "0.x": OLD_REST}
BARE = [language for language in ALL.by_name.values() if language.rest]


def rest_of(endpoint: Endpoint) -> Rest:
    return form(endpoint.neutral)


def find(endpoint: Endpoint, verb: str, path: str) -> Place:
    return bare.find(rest_of(endpoint).routes, verb, path)


def of(verb: str, path: str, family: Endpoint = REST) -> str:
    return find(family, verb, path).route.method


def params_for(
    verb: str, path: str, *query: tuple[str, str], body: Any = None, family: Endpoint = REST, **given: str
) -> dict[str, Any]:
    return params_of(find(family, verb, path), given, query, {} if body is None else body)


def wrong(verb: str, path: str, *query: tuple[str, str], **more: Any) -> list[str]:
    """Return the fields that are complained about."""
    with pytest.raises(InvalidParams) as told:
        params_for(verb, path, *query, **more)
    return [field for field, _ in told.value.violations]


# -------------------------------------------------------------------- the table


@pytest.mark.parametrize("dialect", BARE, ids=lambda dialect: dialect.name)
def test_every_method_has_a_route_and_every_route_a_method(dialect: Language) -> None:
    assert {route.method for route in form(dialect).routes} == set(dialect.methods)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_template_leads_to_its_own_route(family: Endpoint) -> None:
    for route in rest_of(family).routes:
        found = find(family, route.verb, re.sub(r"\{(\w+)\}", r"a-\1", route.path))
        assert found.route is route
        assert all(value == f"a-{name}" for name, value in found.variables.items())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_streams_are_subscribed_by_post_and_get(family: Endpoint) -> None:
    methods, routes = family.neutral.methods, rest_of(family).routes
    verbs = {route.verb for route in routes if methods[route.method].request is SubscribeToTask}
    assert verbs == {"GET", "POST"}


def test_the_words_are_those_of_the_specification() -> None:
    assert REST.segments == {"message:send", "message:stream", "tasks", "extendedAgentCard"}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/message",
        "/message:",
        "/message:sendx",
        "/xmessage:send",
        "/message:send/",
        "/tasks/a/b",
        "/Tasks",
        "/tasks/a/pushNotificationConfigs/b/c",
        "/tasks//",
        "/tasks\n",
        "/v1/tasks",
    ],
)
def test_a_path_that_nobody_has_is_not_found(path: str) -> None:
    with pytest.raises(MethodNotFound):
        of("GET", path)


@pytest.mark.parametrize(
    ("verb", "path", "allowed"),
    [
        ("GET", "/message:send", "POST"),
        ("PUT", "/tasks", "GET"),
        ("POST", "/tasks", "GET"),
        ("DELETE", "/tasks/a", "GET"),
        ("GET", "/tasks/a:cancel", "POST"),
        ("PATCH", "/tasks/a:subscribe", "GET, POST"),
        ("DELETE", "/tasks/a/pushNotificationConfigs", "GET, POST"),
        ("POST", "/tasks/a/pushNotificationConfigs/b", "DELETE, GET"),
        ("HEAD", "/extendedAgentCard", "GET"),
        ("X" * 999, "/tasks", "GET"),
        ("get", "/tasks", "GET"),
    ],
)
def test_a_wrong_verb_is_told_the_right_ones(verb: str, path: str, allowed: str) -> None:
    for family, before in ((REST, path), (OLD_REST, path.replace("extendedAgentCard", "card"))):
        with pytest.raises(NoSuchVerb) as told:
            find(family, verb, before)
        assert told.value.verbs == allowed
        assert len(str(told.value)) < 60


@pytest.mark.parametrize("action", [":stop", ":resubscribe", ":", ":Cancel"])
def test_an_unknown_action_of_a_task_is_told_the_ones_there_are(action: str) -> None:
    for family in (REST, OLD_REST):
        with pytest.raises(MethodNotFound) as told:
            find(family, "POST", f"/tasks/t-1{action}")
        assert told.value.facts["detail"].endswith("behind the id it may have :cancel or :subscribe")
        assert of("GET", f"/tasks/t-1{action}", family) == of("GET", "/tasks/t-1", family)


def test_a_message_of_1_0_is_told_which_form_has_parts() -> None:
    """A client of 1.0 that calls the paths of 0.x sends a role of one form and the parts of the other."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    decode = PROTO.methods["message/send"].decode
    with pytest.raises(InvalidParams) as told:
        decode({"message": message})
    ((field, fault),) = told.value.violations
    assert (field, fault.partition(":")[0]) == ("message.content", "is required")
    assert "parts is for messages whose role is user" in fault
    assert decode({"message": message | {"content": [{"text": "these"}]}}).message.text == "these"


def test_an_empty_id_is_an_id_that_the_decoder_refuses() -> None:
    for path in ("/tasks/", "/tasks/:cancel", "/tasks//pushNotificationConfigs"):
        found = find(REST, "POST" if "cancel" in path else "GET", path)
        assert "" in found.variables.values()
    with pytest.raises(InvalidParams) as told:
        REST.neutral.methods["GetTask"].decode(params_for("GET", "/tasks/"))
    assert told.value.violations == (("id", "must not be empty"),)


@pytest.mark.parametrize("id", ["a", "a:b", "a:cancel:b", ":", "..", "é\u2028", "a b", "%2F", "\ufffd", "x" * 60_000])
def test_an_id_may_hold_anything_but_a_slash(id: str) -> None:
    found = find(REST, "GET", f"/tasks/{id}")
    assert (found.route.method, found.variables) == ("GetTask", {"id": id})
    assert find(REST, "POST", f"/tasks/{id}:cancel").variables == {"id": id}


# -------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("family", "spoken"),
    [(REST, {None, "", "1.0", "1.0.1"}), (OLD_REST, {None, "", "0.3", "0.3.0", "0.2", "0.2.9"})],
    ids=FAMILIES,
)
def test_a_version_must_be_that_of_the_path(family: Endpoint, spoken: set[str | None]) -> None:
    for version in (
        None,
        "",
        "1.0",
        "1.0.1",
        "0.3",
        "0.3.0",
        "0.2",
        "0.2.9",
        "0.5",
        "2.0",
        "x",
        "1",
        "1.0\n",
        "1" * 99,
    ):
        get = next(name for name in family.neutral.methods if name.endswith(("GetTask", "tasks/get")))
        if version in spoken:
            family.choose(member(get), version)
        else:
            with pytest.raises(CallError) as told:
                family.choose(member(get), version)
            facts = told.value.error.facts
            assert facts["supportedVersions"] == ("1.0" if family is REST else "0.2,0.3")
            assert len(facts["requestedVersion"]) <= 32


# ---------------------------------------------------------------------- params


def test_path_query_and_body_are_one() -> None:
    assert params_for("GET", "/tasks/t", ("historyLength", "2")) == {"id": "t", "historyLength": 2}
    assert params_for("POST", "/tasks/t:cancel", body={"metadata": {"a_b": 1}}, tenant="acme") == {
        "id": "t",
        "metadata": {"a_b": 1},
        "tenant": "acme",
    }
    body = {"message": {"text": "hi"}}
    assert params_for("POST", "/message:send", body=body) is body
    assert params_for("POST", "/message:send", ("tenant", "acme"), body=body) == body | {"tenant": "acme"}
    assert body == {"message": {"text": "hi"}}


def test_members_of_the_query_have_the_types_of_the_params() -> None:
    assert params_for(
        "GET",
        "/tasks",
        ("pageSize", "5"),
        ("status", "3"),
        ("includeArtifacts", "true"),
        ("contextId", "7"),
        ("page_token", "x"),
        ("historyLength", "-1"),
    ) == {
        "pageSize": 5,
        "status": 3,
        "includeArtifacts": True,
        "contextId": "7",
        "pageToken": "x",
        "historyLength": -1,
    }
    assert params_for("GET", "/tasks", ("limit", "5e0"), ("status", "working"), ("cursor", "1"), family=OLD_REST) == {
        "limit": 5,
        "status": "working",
        "cursor": "1",
    }


@pytest.mark.parametrize(
    ("family", "name", "text"),
    [
        ("1.0", "includeArtifacts", "yes"),
        ("1.0", "includeArtifacts", "1"),
        ("1.0", "includeArtifacts", ""),
        ("1.0", "includeArtifacts", "TRUE"),
        ("0.x", "limit", "abc"),
        ("0.x", "limit", ".5"),
        ("0.x", "limit", ""),
        ("0.x", "limit", "+1"),
        ("0.x", "limit", "9" * 5_000),
        ("0.x", "limit", "\u0661"),
        ("0.x", "limit", "1 "),
        ("0.x", "historyLength", "null"),
        ("1.0", "contextId", "a\0b"),
    ],
    ids=repr,
)
def test_a_bad_member_of_the_query_is_named(family: str, name: str, text: str) -> None:
    assert wrong("GET", "/tasks", (name, text), family=FAMILIES[family]) == [name]


def test_a_member_that_nobody_knows_is_ignored_however_often_it_comes() -> None:
    assert params_for("GET", "/tasks/t", ("utm", "1"), ("utm", "2"), ("A2A-Version", "1.0"), ("metadata", "{}")) == {
        "id": "t"
    }


@pytest.mark.parametrize("names", [("pageSize", "pageSize"), ("pageSize", "page_size")])
def test_a_member_that_comes_twice_is_refused(names: tuple[str, str]) -> None:
    assert wrong("GET", "/tasks", (names[0], "1"), (names[1], "1")) == ["pageSize"]


def test_a_contradiction_is_named_and_saying_the_same_twice_is_none() -> None:
    assert wrong("POST", "/tasks/t:cancel", body={"id": "u"}) == ["id"]
    assert wrong("POST", "/tasks/t:cancel", body={"id": 5}) == ["id"]
    assert wrong("POST", "/tasks/t/pushNotificationConfigs", body={"task_id": "u"}) == ["taskId"]
    assert wrong("POST", "/message:send", body={"tenant": "a"}, tenant="b") == ["tenant"]
    assert wrong("POST", "/message:send", ("tenant", "a"), tenant="b") == ["tenant"]
    assert wrong("GET", "/tasks/t", ("id", "u")) == ["id"]
    assert params_for("POST", "/tasks/t:cancel", ("tenant", "a"), body={"id": "t", "tenant": ""}, tenant="a") == {
        "id": "t",
        "tenant": "a",
    }


@pytest.mark.parametrize("body", [[], "text", 5, True, None], ids=repr)
def test_a_body_is_an_object(body: Any) -> None:
    with pytest.raises(InvalidParams) as told:
        params_of(find(REST, "POST", "/message:send"), {}, (), body)
    assert told.value.violations == (("body", "must be a JSON object"),)


def test_the_character_that_no_database_holds_is_refused() -> None:
    assert wrong("GET", "/tasks/a\0b") == ["id"]
    assert wrong("GET", "/tasks", tenant="\0") == ["tenant"]


# ---------------------------------------------------------------------- errors


def test_every_error_has_a_status_of_its_own_row() -> None:
    assert set(REST_STATUSES) == set(errors.ALL)


@pytest.mark.parametrize("error", errors.ALL, ids=lambda error: error.reason)
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_an_error_says_its_status_and_its_reason(family: Endpoint, error: type[errors.Error]) -> None:
    failure = bare.failure(None, error(detail="why"), family.neutral)
    wire = json.loads(failure.payload)
    told = wire["error"]
    assert set(told) == {"code", "status", "message", "details"}
    assert (told["code"], told["status"]) == REST_STATUSES[error]
    assert (failure.status, failure.code) == (told["code"], family.neutral.column[error].number)
    assert told["message"] == f"{error.sentence}: why"
    assert told["details"][0]["reason"] == family.neutral.reason(error)
    assert told["details"][0]["metadata"] == {"detail": "why"} | WAITS.get(error, {})
    assert set(wire) - {"error"} == (set() if family is REST else {"code", "message", "type"})


def test_a_status_that_http_alone_has_wins() -> None:
    names = {405: "UNIMPLEMENTED", 408: "DEADLINE_EXCEEDED", 413: "INVALID_ARGUMENT", 415: "INVALID_ARGUMENT"}
    for status, name in names.items():
        told = json.loads(bare.failure(None, errors.InvalidRequest(detail="x"), REST.neutral, status).payload)["error"]
        assert (told["code"], told["status"]) == (status, name)


def test_a_twin_has_the_status_of_its_row_and_no_other_class_has() -> None:
    class GoneForGood(errors.TaskNotFound, twin=True):
        pass

    class Faded(errors.TaskNotFound):
        reason = "FADED"

    assert bare.failure(None, GoneForGood(), REST.neutral).status == 404
    with pytest.raises(LookupError, match="Faded has no HTTP status"):
        entry(REST_STATUSES, Faded(), "HTTP status")


def test_queries_hold_only_plain_members() -> None:
    for dialect in BARE:
        for route in form(dialect).routes:
            assert route.query is None or issubclass(route.query, Struct)
    assert "metadata" not in params_for("GET", "/tasks/t", ("metadata", "x"))
