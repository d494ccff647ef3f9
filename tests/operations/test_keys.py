"""Keys and scopes; a task of another owner looks like one that is not there."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client, RequestFactory
from django.utils import timezone
from msgspec.structs import replace

from a2a.batches import ExecuteBatch
from a2a.errors import ExpiredKey, MissingScope, Unauthenticated
from a2a.memory import DeleteMemory, ListMemory, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    Describe,
    EndSharedStream,
    Execute,
    FollowSharedStream,
    FollowTask,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    Invoke,
    ListPushConfigs,
    ListTasks,
    Negotiate,
    NotifyOfTask,
    SendChunk,
    SendMessage,
    SendToSharedStream,
    StartSharedStream,
    StreamInvoke,
    StreamMessage,
    SubscribeToTask,
)
from a2a.workflows import ExecuteWorkflow, GetCapabilities, GetWorkflow, SendInPhase, SetPhase, StreamInPhase
from tasks_app.callers import access
from tasks_app.callers.access import FindCaller, digests, new_key
from tasks_app.callers.schemes import evidence_in
from tasks_app.exchanges.recording import recorder
from tasks_app.models import ApiKey, Principal, Tenant
from tasks_app.operations import OPERATIONS, Context, perform_now
from tasks_app.transports import keys
from tests.conftest import PATIENCE, Person, person
from tests.operations.asking import ask, message, sent, shown
from tests.support.callers import find_caller, find_callers

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def test_only_the_digest_of_a_key_is_kept(db: None) -> None:
    key = new_key("somebody")
    row = ApiKey.objects.get()
    assert key not in "".join(str(value) for value in vars(row).values())
    assert row.prefix == key[:8]
    assert find_caller(key)


def test_a_key_outlives_a_change_of_the_secret_while_the_former_one_is_named(db: None, settings: Any) -> None:
    key, ended = new_key("somebody"), new_key("somebody")
    access.revoke(ApiKey.objects.filter(digest__in=digests(ended)))
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another secret, which is long enough for it"
    assert find_caller(key) is None
    settings.SECRET_KEY_FALLBACKS = ["some other secret, which is long enough too", former]
    caller = find_caller(key)
    assert caller is not None
    assert (caller.name, find_caller(ended)) == ("somebody", None)
    new_key("somebody", key=key)
    settings.SECRET_KEY_FALLBACKS = []
    assert (find_caller(key), ApiKey.objects.count()) == (caller, 2)


def test_a_key_that_is_stored_under_two_secrets_is_one_key(db: None, settings: Any) -> None:
    key = new_key("somebody")
    former, settings.SECRET_KEY = settings.SECRET_KEY, "another secret, which is long enough for it"
    new_key("somebody", key=key)
    settings.SECRET_KEY_FALLBACKS = [former]
    for digest in digests(key):
        ApiKey.objects.filter(digest=digest).update(revoked_at=timezone.now())
        assert find_caller(key) is None, "revoked in one row, it is revoked"
        ApiKey.objects.update(revoked_at=None)
    assert find_caller(key)
    new_key("somebody", key=key)
    assert list(ApiKey.objects.values_list("digest", flat=True)) == [digests(key)[0]]
    assert find_caller(key)


def test_a_revoked_key_is_trusted_for_one_second_and_no_longer(
    owner: Person, fresh_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = SimpleNamespace(now=100.0, monotonic=lambda: time.now)
    monkeypatch.setattr(keys, "time", time)
    request = RequestFactory().post("/jsonrpc", headers={"Authorization": f"Bearer {owner.key}"})

    def caller() -> access.Caller:
        return async_to_sync(keys.authenticate)(evidence_in(request.META), str).caller

    assert caller() == owner.caller
    access.revoke(ApiKey.objects.all())
    time.now += 0.99
    assert caller() == owner.caller
    time.now += 0.01
    with pytest.raises(Unauthenticated):
        caller()


def test_keys_of_one_principal_share_what_it_owns(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    second = find_caller(new_key("owner", tenant="home"))
    assert second is not None
    assert replace(second, key_id=owner.caller.key_id, credential=owner.caller.credential) == owner.caller
    assert shown(ask(Person("", second), GetTask(id=task.id))) == task


@pytest.mark.parametrize("tenant", ["v1", "tasks", "message:send", "jsonrpc", ".well-known", "admin", "", "a/b"])
def test_a_tenant_cannot_be_called_what_a_path_begins_with(tenant: str) -> None:
    with pytest.raises(ValueError, match="a tenant cannot be called"):
        new_key("somebody", tenant=tenant)
    assert not Tenant.objects.exists()


def test_a_principal_of_the_same_name_in_another_tenant_is_somebody_else(owner: Person) -> None:
    other = person("owner", "abroad")
    assert other.caller.owner_id != owner.caller.owner_id
    assert Principal.objects.filter(name="owner").count() == 2


@pytest.mark.parametrize(
    "change", [{"revoked_at": timezone.now()}, {"expires_at": timezone.now() - timedelta(seconds=1)}]
)
def test_a_revoked_or_expired_key_finds_nobody(db: None, change: dict[str, object]) -> None:
    key = new_key("somebody")
    ApiKey.objects.update(**change)
    assert find_caller(key) is None


def test_only_a_key_that_was_not_revoked_is_said_to_have_expired(db: None) -> None:
    """The bridge raises the error for the holder of the key."""
    keys = [new_key(name) for name in ("ann", "bob", "eve")]
    past = timezone.now() - timedelta(seconds=1)
    ApiKey.objects.filter(principal__name__in=["ann", "bob"]).update(expires_at=past)
    ApiKey.objects.filter(principal__name="bob").update(revoked_at=past)
    results = FindCaller.do_many([FindCaller(digests(key)) for key in [*keys, "tdk_nobody"]])
    assert isinstance(results[0], ExpiredKey)
    assert results[1] is results[3] is None
    assert isinstance(results[2], access.Caller)


def test_a_key_that_expires_later_is_good_until_then(db: None) -> None:
    key = new_key("somebody")
    ApiKey.objects.update(expires_at=timezone.now() + timedelta(hours=1))
    assert find_caller(key)


def test_a_group_of_keys_is_told_apart(owner: Person, stranger: Person) -> None:
    keys = [owner.key, "tdk_nobody", stranger.key, owner.key, ""]
    asked = find_callers(keys)
    assert asked == [owner.caller, None, stranger.caller, owner.caller, None]


def test_every_operation_has_a_scope(db: None) -> None:
    scopes = {request: operation.right.scope for request, operation in OPERATIONS.items()}
    assert scopes == {
        SendMessage: "tasks:write",
        StreamMessage: "tasks:write",
        Invoke: "tasks:write",
        StreamInvoke: "tasks:write",
        Execute: "tasks:write",
        Negotiate: "tasks:read",
        GetTask: "tasks:read",
        ListTasks: "tasks:read",
        CancelTask: "tasks:cancel",
        SubscribeToTask: "tasks:read",
        FollowTask: "tasks:read",
        CreatePushConfig: "tasks:write",
        GetPushConfig: "tasks:read",
        ListPushConfigs: "tasks:read",
        DeletePushConfig: "tasks:write",
        StartSharedStream: "tasks:write",
        FollowSharedStream: "tasks:read",
        SendToSharedStream: "tasks:write",
        SendChunk: "tasks:write",
        EndSharedStream: "tasks:write",
        ExecuteBatch: "tasks:write",
        StoreMemory: "tasks:write",
        RetrieveMemory: "tasks:read",
        ListMemory: "tasks:read",
        DeleteMemory: "tasks:write",
        SearchMemory: "tasks:read",
        SendInPhase: "tasks:write",
        StreamInPhase: "tasks:write",
        SetPhase: "tasks:write",
        ExecuteWorkflow: "tasks:write",
        GetWorkflow: "tasks:read",
        GetCapabilities: "tasks:read",
        NotifyOfTask: "tasks:read",
        GetExtendedCard: "tasks:read",
        Describe: "tasks:read",
    }


def test_the_synchronous_half_checks_the_scope_too(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    reader = find_caller(new_key("owner", tenant="home", scopes="tasks:read"))
    assert reader
    with pytest.raises(MissingScope) as told:
        perform_now(CancelTask(id=task.id), Context(caller=reader))
    assert told.value.facts == {"required": "tasks:cancel", "provided": "tasks:read"}


def test_the_synchronous_half_does_not_wait(owner: Person) -> None:
    with pytest.raises(TypeError):
        perform_now(SendMessage(message=message()), Context(caller=owner.caller, agent="form-coroutine"))


@pytest.mark.parametrize("body", [{}, {"id": "another"}], ids=["no params", "wrong params"])
def test_over_rest_too_the_scope_comes_before_the_params(client: Client, body: dict[str, str]) -> None:
    reader = person("reader", "home", scopes="tasks:read")
    told = client.post("/tasks/t:cancel", body, "application/json", headers={"X-API-Key": reader.key})
    assert (told.status_code, told.json()["error"]["details"][0]["reason"]) == (403, "MISSING_SCOPE")


def test_a_key_that_may_only_write_reads_what_it_writes_to_and_nothing_else(client: Client, owner: Person) -> None:
    writer = person("owner", "home", scopes="tasks:write")
    task = sent(owner, "confidential", agent="asks", return_immediately=True)

    def call(method: str, **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/jsonrpc", body, "application/json", headers={"X-API-Key": writer.key}).json()

    said = {"messageId": "m-w", "taskId": task.id, "role": "ROLE_USER", "parts": [{"text": "red"}]}
    now = {"returnImmediately": True}
    assert "confidential" in str(call("SendMessage", message=said, configuration=now)["result"])
    for method, params in (("GetTask", {"id": task.id}), ("ListTasks", {}), ("SubscribeToTask", {"id": task.id})):
        refused = call(method, **params)
        assert refused["error"]["code"] == -38010, refused
        assert "confidential" not in str(refused)
    assert recorder.drain(PATIENCE), "a later test counts exchanges"
