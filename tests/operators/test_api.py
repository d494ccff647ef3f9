"""The operators' API: who gets in, what they may do, and how a list goes on and an error explains itself."""

from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.api.resources import RESOURCES
from tasks_app.callers import access
from tasks_app.ids import uuid7_at
from tasks_app.limits import strangers
from tasks_app.models import Act, ApiKey, Event, OperatorToken, Principal, Run
from tasks_app.operators import tokens, users
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tests.operators.people import OPS, operator, program
from tests.support.callers import find_caller
from tests.support.commands import printed, run
from tests.support.hand import Hand
from tests.support.operators import NOW, exchange, status, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def problem(answer: Any, status: int) -> dict[str, Any]:
    """Return the problem of an answer with this status, which says what, where and what to do."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    body: dict[str, Any] = answer.json()
    assert body["detail"]
    assert body["instance"].startswith("/api/")
    assert body["advice"]
    return body


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.segment)
def test_each_resource_has_a_list_a_row_and_its_verbs(resource: Any, olga: Principal) -> None:
    robot = program(ADMINISTRATOR)
    answer = robot.get(f"{resource.segment}/")
    assert answer.status_code == 200, answer.content
    assert set(answer.json()) == {"next", "previous", "results"}
    problem(robot.get(f"{resource.segment}/999999999/"), 404)
    for name, each in resource.verbs().items():
        place = "" if name == "create" else f"{name.replace('_', '-')}/"
        path = f"{resource.segment}/999999999/{place}" if each.one else f"{resource.segment}/{place}"
        assert problem(robot.post(path, surplus=1), 400 if not each.one else 404)
        problem(robot.get(path), 405) if place else None


def test_without_a_token_nothing_is_shown_not_even_what_there_is() -> None:
    for path in ("", "tasks/", "tasks/1/", "openapi.json", "nothing/here"):
        answer = Client().get(f"/api/v1/{path}")
        assert problem(answer, 401)
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="operators"'
    assert Client().post("/api/v1/keys/", {}, content_type="application/json").status_code == 401


def test_a_key_of_a_caller_opens_nothing_here_and_a_token_nothing_there(olga: Principal) -> None:
    key = access.new_key("olga", tenant="acme")
    robot = program(ADMINISTRATOR)
    headers = {"Authorization": f"Bearer {key}"}
    assert (
        "API keys of callers are not accepted"
        in problem(Client().get("/api/v1/tasks/", headers=headers), 401)["detail"]
    )
    assert find_caller(robot.token) is None
    assert Client().get("/admin/", headers=robot.headers).status_code == 302


def test_a_token_ends_when_it_expires_is_revoked_or_its_user_is_disabled(hand: Hand) -> None:
    robot = program(VIEWER)
    assert robot.get("tasks/").status_code == 200
    hand.on(seconds=timedelta(days=1).total_seconds())
    problem(robot.get("tasks/"), 401)
    other = program(VIEWER)
    tokens.revoke(OperatorToken.objects.get(user=other.user), OPS)
    problem(other.get("tasks/"), 401)
    third = program(VIEWER)
    users.set_active(OPS, third.user, False)
    problem(third.get("tasks/"), 401)
    users.set_active(OPS, third.user, True)
    problem(third.get("tasks/"), 401)


def test_wrong_tokens_of_an_address_are_limited_and_a_right_one_is_not(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES, robot = 3, program(VIEWER)
    strangers.failures.clear()
    headers = {"Authorization": f"Bearer {tokens.PREFIX}nonsense"}
    for _ in range(3):
        problem(Client().get("/api/v1/", headers=headers, REMOTE_ADDR="203.0.113.7"), 401)
    limited = Client().get("/api/v1/", headers=headers, REMOTE_ADDR="203.0.113.7")
    assert problem(limited, 429)["advice"].startswith("Wait")
    assert 1 <= int(limited.headers["Retry-After"]) <= 60
    assert Client().get("/api/v1/", headers=robot.headers, REMOTE_ADDR="203.0.113.7").status_code == 200
    problem(Client().get("/api/v1/", headers=headers, REMOTE_ADDR="203.0.113.8"), 401)


def test_a_superuser_has_no_token(client: Client) -> None:
    ada = User.objects.create_superuser("ada", password="a long password")
    with pytest.raises(tokens.TokenRefused, match="is a superuser"):
        tokens.make_token(ada, "x", 1, OPS)
    robot = program(ADMINISTRATOR)
    User.objects.filter(pk=robot.user.pk).update(is_superuser=True)
    problem(robot.get("tasks/"), 401)


def test_no_digest_and_no_token_can_be_read_again() -> None:
    robot = program(ADMINISTRATOR)
    row = OperatorToken.objects.get()
    text = robot.get("tokens/").content.decode() + robot.get(f"tokens/{row.pk}/").content.decode()
    assert robot.token not in text
    assert row.digest not in text
    assert row.digest != robot.token


def test_the_use_of_a_token_is_recorded_once_a_minute(hand: Hand) -> None:
    robot = program(VIEWER)
    robot.get("tasks/")
    first = OperatorToken.objects.get().used_at
    hand.on(seconds=30)
    robot.get("tasks/")
    assert OperatorToken.objects.get().used_at == first == hand() - timedelta(seconds=30)
    hand.on(seconds=40)
    robot.get("tasks/")
    assert OperatorToken.objects.get().used_at == hand()


def test_a_session_of_the_admin_works_with_its_token_against_forged_forms() -> None:
    user = operator(ADMINISTRATOR)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.get("/api/v1/keys/").status_code == 200
    body = {"principal": "olga", "tenant": "acme"}
    problem(client.post("/api/v1/keys/", body, content_type="application/json"), 403)
    client.get("/admin/login/?next=/admin/")
    client.get("/admin/password_change/")
    forgery = {"X-CSRFToken": client.cookies["csrftoken"].value}
    made = client.post("/api/v1/keys/", body, content_type="application/json", headers=forgery)
    assert made.status_code == 201
    assert ApiKey.objects.get().prefix == made.json()["key"][:8]
    token = client.post("/api/v1/tokens/", {"name": "ci"}, content_type="application/json", headers=forgery)
    assert tokens.find_token(token.json()["token"])


def test_a_token_makes_no_other_token() -> None:
    assert "cannot make another" in problem(program(ADMINISTRATOR).post("tokens/", name="x"), 403)["detail"]


def test_a_viewer_reads_and_is_refused_each_verb_with_the_name_of_its_permission(olga: Principal) -> None:
    robot, row = program(VIEWER), task(olga)
    assert robot.get(f"tasks/{row.pk}/").status_code == 200
    assert "tasks_app.change_task" in problem(robot.post(f"tasks/{row.pk}/cancel/"), 403)["detail"]
    assert "tasks_app.view_act" in problem(robot.get("acts/"), 403)["detail"]


def test_an_act_has_its_operator_its_address_and_its_trace(olga: Principal) -> None:
    access.new_key("olga", tenant="acme")
    robot, key = program(ADMINISTRATOR), ApiKey.objects.get()
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    answer = Client().post(
        f"/api/v1/keys/{key.pk}/revoke/",
        {"reason": "it leaked"},
        content_type="application/json",
        headers=robot.headers | trace,
        REMOTE_ADDR="203.0.113.7",
    )
    assert answer.json()["revoked_at"]
    act = Act.objects.latest("pk")
    assert (act.operator, act.door, act.verb, act.reason) == (robot.user.username, "api", "revoke", "it leaked")
    assert (act.peer, act.trace) == ("203.0.113.7", "0af7651916cd43dd8448eb211c80319c")
    assert act.tenant_id == olga.tenant_id
    (shown,) = robot.get("acts/", kind="API key").json()["results"]
    assert (shown["peer"], shown["tenant"], shown["after"]["webhooks"]) == ("203.0.113.7", "acme", 0)
    assert "revoked already" in problem(robot.post(f"keys/{key.pk}/revoke/"), 409)["detail"]


def test_a_list_goes_on_where_its_page_ends(olga: Principal) -> None:
    ids = [exchange(olga).pk for _ in range(5)]
    robot, pages = program(VIEWER), []
    answer = robot.get("exchanges/", limit=2).json()
    pages.append([row["id"] for row in answer["results"]])
    while answer["next"]:
        answer = Client().get(answer["next"], headers=robot.headers).json()
        pages.append([row["id"] for row in answer["results"]])
    newest = sorted(ids, reverse=True)
    assert pages == [newest[:2], newest[2:4], newest[4:]]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.segment)
def test_a_list_of_rows_with_a_time_has_a_window(resource: Any, olga: Principal) -> None:
    robot, path = program(ADMINISTRATOR), f"{resource.segment}/"
    times = {"since": "2026-11-22T05:00:00Z", "until": "9999-12-31T00:00:00+00:00"}
    expected = 200 if "since" in resource.parameters() else 400
    assert robot.get(path, **times).status_code == expected
    assert expected == 200 or resource.segment not in {
        "tasks",
        "exchanges",
        "audit",
        "acts",
        "keys",
        "refusals",
        "users",
    }
    for time in ("yesterday", "2026-11-22", "2026-11-22T05:00:00", ""):
        problem(robot.get(path, until=time), 400)


def test_a_window_begins_with_its_first_time_and_ends_before_its_last(olga: Principal, hand: Hand) -> None:
    calls, keys, times = [], [], []
    for _ in range(3):
        calls.append(exchange(olga, id=uuid7_at(clock.now())).pk)
        keys.append(ApiKey.objects.create(principal=olga, digest=f"{len(keys)}").pk)
        ApiKey.objects.filter(pk=keys[-1]).update(created_at=clock.now())
        times.append(clock.now().isoformat().replace("+00:00", "Z"))
        hand.on(minutes=1)
    robot = program(VIEWER)
    for path, ids in (("exchanges/", calls), ("keys/", keys)):
        for query, chosen in (
            ({"since": times[1]}, ids[1:]),
            ({"until": times[1]}, ids[:1]),
            ({"since": times[1], "until": times[2]}, ids[1:2]),
        ):
            found = [row["id"] for row in robot.get(path, **query).json()["results"]]
            assert [each for each in found if each in ids] == chosen[::-1], (path, query)


@pytest.mark.parametrize(
    "query",
    [
        *({"cursor": text} for text in ("nonsense!", "cD0lMDA=", "\0", "!", "")),
        *({"limit": text} for text in ("-1", "0", "abc", "501", "", "9" * 5_000)),
        {"colour": "red"},
        {"state": "a\0b"},
        {"find": "\0"},
    ],
)
def test_a_query_that_cannot_be_answered_says_why(query: dict[str, str]) -> None:
    answer = problem(program(VIEWER).get("tasks/", **query), 400)
    assert [error["where"].lstrip("/?") for error in answer["errors"]] == list(query)
    assert ("`cursor`" in answer["advice"]) is ("cursor" in query)


def test_errors_of_a_body_name_its_members() -> None:
    robot = program(ADMINISTRATOR)
    errors = problem(robot.post("keys/", days="soon", colour="red"), 400)["errors"]
    assert errors == [{"where": "/colour", "what": errors[0]["what"]}]
    errors = problem(robot.post("keys/", days="soon"), 400)["errors"]
    assert {each["where"] for each in errors} == {"/principal", "/days"}
    refusal = problem(robot.post("keys/", principal="olga", days=1e-9), 400)
    assert "at least a minute" in str(refusal)
    for wrong in (b"{", b'{"principal": NaN}', b'{"principal": "\\ud800"}', b'{"principal": "\xff"}', b"[" * 100_000):
        answer = Client().post("/api/v1/keys/", wrong, content_type="application/json", headers=robot.headers)
        assert problem(answer, 400)["detail"].startswith("The body is not JSON in UTF-8: ")
    problem(
        Client().post("/api/v1/keys/", "a=1", content_type="application/x-www-form-urlencoded", headers=robot.headers),
        415,
    )
    problem(Client().post("/api/v1/keys/", "[1]", content_type="application/json", headers=robot.headers), 400)
    problem(robot.post("keys/", principal="x", tenant="admin"), 400)


def test_a_body_in_another_form_is_named() -> None:
    robot = program(ADMINISTRATOR)
    for kind, headers, name in (
        ("application/json; charset=nope", {}, "charset 'nope'"),
        ('application/json; charset="utf-7"', {}, "charset 'utf-7'"),
        ("application/json", {"Content-Encoding": "gzip"}, "Content-Encoding 'gzip'"),
    ):
        answer = Client().generic("POST", "/api/v1/keys/", b"{}", content_type=kind, headers=robot.headers | headers)
        assert name in problem(answer, 415)["detail"]
    headers = robot.headers | {"Content-Encoding": "identity"}
    for kind in ("application/json; charset=UTF-8", "application/json"):
        assert problem(Client().post("/api/v1/keys/", b"{}", content_type=kind, headers=headers), 400)["errors"]


def test_the_title_of_a_problem_is_the_phrase_of_its_status() -> None:
    robot = program(ADMINISTRATOR)
    for answer, title in (
        (
            Client().put("/api/v1/keys/", b"{}", content_type="application/json", headers=robot.headers),
            "Method Not Allowed",
        ),
        (
            Client().post("/api/v1/keys/", b"a", content_type="text/plain", headers=robot.headers),
            "Unsupported Media Type",
        ),
        (robot.get("keys/0/"), "Not Found"),
        (robot.post("keys/"), "Bad Request"),
    ):
        assert problem(answer, answer.status_code)["title"] == title


def test_a_task_and_its_calls_are_found_by_any_id(olga: Principal) -> None:
    row = task(olga, context_id="ctx-of-olga")
    call = exchange(olga, request='{"method":"SendMessage"}', task_id=row.pk)
    robot = program(OPERATOR)
    (found,) = robot.get("tasks/", find="ctx-of-olga").json()["results"]
    assert (found["id"], found["tenant"], found["owner"]) == (row.pk, "acme", "olga")
    shown = robot.get(f"tasks/{row.pk}/").json()
    assert shown["task"]["history"][0]["parts"] == [{"text": "count to three"}]
    (pair,) = robot.get("exchanges/", find=row.pk).json()["results"]
    assert pair["id"] == call.pk
    assert robot.get(f"exchanges/{call.pk}/").json()["request"] == '{"method":"SendMessage"}'


def test_an_operator_is_made_given_roles_and_disabled(olga: Principal) -> None:
    robot = program(ADMINISTRATOR)
    made = robot.post("users/", username="tom", roles=["viewer"], tenants=["acme"]).json()
    assert User.objects.get(username="tom").check_password(made["password"])
    assert (made["roles"], made["tenants"], made["is_superuser"]) == (["viewer"], ["acme"], False)
    path = f"users/{made['id']}"
    assert robot.post(f"{path}/role/", roles=["operator", "auditor"]).json()["roles"] == ["auditor", "operator"]
    assert robot.post(f"{path}/reach/", all_tenants=True).json()["tenants"] == []
    password = robot.post(f"{path}/password/").json()["password"]
    assert User.objects.get(username="tom").check_password(password)
    assert robot.post(f"{path}/disable/").json()["is_active"] is False
    problem(robot.post("users/", username="tom"), 400)
    problem(robot.post("users/", username="a b!"), 400)
    problem(robot.post(f"{path}/role/", roles=["god"]), 400)
    problem(robot.post(f"{path}/reach/", tenants=["nowhere"]), 400)
    verbs = list(Act.objects.filter(kind="user").order_by("pk").values_list("verb", flat=True))
    assert verbs[-5:] == ["make", "role", "reach", "password", "disable"]


def test_the_address_and_the_names_of_an_operator_are_set_at_each_door() -> None:
    tom, robot = operator(VIEWER, name="tom"), program(ADMINISTRATOR)
    set_by_command = printed("a2a", "users", "details", "tom", "--email", "tom@example.com", "--first-name", "Tom")[0]
    assert (set_by_command["email"], set_by_command["first_name"]) == ("tom@example.com", "Tom")
    row = robot.post(f"users/{tom.pk}/details/", last_name="Tyler", email="").json()
    assert (row["email"], row["first_name"], row["last_name"]) == ("", "Tom", "Tyler")
    act = Act.objects.latest("pk")
    assert (act.verb, orjson.loads(act.before)) == ("details", {"email": "tom@example.com", "last_name": ""})
    for wrong in ({"email": "nowhere"}, {"first_name": "x" * 151}, {"first_name": "wa\u202etch"}):
        (error,) = problem(robot.post(f"users/{tom.pk}/details/", **wrong), 400)["errors"]
        assert error["where"] == f"/{next(iter(wrong))}"
    assert "Give email" in str(problem(robot.post(f"users/{tom.pk}/details/"), 400)["errors"])
    assert "Give --email" in run("a2a", "users", "details", "tom").errors
    assert "printable" in run("a2a", "users", "details", "tom", "--last-name", "a\nb").errors
    assert User.objects.get(username="tom").last_name == "Tyler"


def test_an_administrator_changes_no_superuser() -> None:
    ada, robot = User.objects.create_superuser("ada", password="a long password"), program(ADMINISTRATOR)
    for verb in ("password", "disable", "enable"):
        assert "is a superuser" in problem(robot.post(f"users/{ada.pk}/{verb}/"), 403)["detail"]
    assert robot.get(f"users/{ada.pk}/").status_code == 200


def test_the_description_names_every_path() -> None:
    paths = program(VIEWER).get("openapi.json").json()["paths"]
    assert "/api/v1/keys/{id}/revoke/" in paths
    assert set(paths["/api/v1/keys/"]) == {"get", "post"}
    assert {path.split("/")[3] for path in paths} == {resource.segment for resource in RESOURCES}


def test_a_task_is_shown_with_its_events_and_the_tracebacks_of_its_runs(olga: Principal) -> None:
    steps = [StatusChanged(status=status(TaskState.WORKING, f"step {n}")) for n in range(3)]
    row, robot = task(olga, *steps), program(VIEWER)
    Run.objects.create(task=row, fence=1, worker="w", ended_at=NOW, outcome="failed", traceback="Traceback: boom")
    shown = robot.get(f"tasks/{row.pk}/").json()
    assert shown["runs"][0]["traceback"] == "Traceback: boom"
    assert ([each["seq"] for each in shown["events"]], shown["next"]) == ([1, 2, 3, 4], None)
    assert "step 2" in str(shown["events"][3]["payload"])
    newest = robot.get(f"tasks/{row.pk}/", limit=3).json()
    assert [each["seq"] for each in newest["events"]] == [2, 3, 4]
    older = Client().get(newest["next"], headers=robot.headers).json()
    assert ([each["seq"] for each in older["events"]], older["next"]) == ([1], None)
    assert problem(robot.get(f"tasks/{row.pk}/", limit=101), 400)["errors"][0]["where"] == "/limit"


def test_a_task_with_a_damaged_log_is_shown_as_far_as_it_can_be_read(olga: Principal) -> None:
    row, robot = task(olga, StatusChanged(status=status(TaskState.WORKING))), program(VIEWER)
    Event.objects.filter(task_id=row.pk, seq=2).update(payload="{damaged")
    for shown in (robot.get(f"tasks/{row.pk}/").json(), *printed("tasks", "show", row.pk)):
        assert (shown["task"], shown["events"][1]["payload"]) == (None, "{damaged")
        assert shown["events"][0]["payload"]


def test_a_task_with_an_event_of_an_unknown_kind_is_shown_at_each_door(olga: Principal, admin_client: Client) -> None:
    row, robot = task(olga, StatusChanged(status=status(TaskState.WORKING))), program(VIEWER)
    Event.objects.filter(task_id=row.pk, seq=2).update(kind="later-version")
    for shown in (robot.get(f"tasks/{row.pk}/").json(), *printed("tasks", "show", row.pk)):
        assert (shown["task"], shown["events"][1]["kind"]) == (None, "later-version")
    page = admin_client.get(reverse("admin:tasks_app_task_change", args=[row.pk]))
    assert "later-version" in page.content.decode()
