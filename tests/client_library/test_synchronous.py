"""The client without `async`."""

import inspect

import pytest

from a2a.client import Client, SyncClient, errors
from a2a.types import Task
from tests.conftest import Server


def test_a_script_sends_streams_and_reads_without_async(server: Server) -> None:
    with SyncClient(f"{server.url}/agents/echo/", token=server.owner) as client:
        task = client.send("hello")
        assert isinstance(task, Task)
        assert client.get_task(task.id) == task
        assert task in client.list_tasks(include_artifacts=True).tasks or client.list_tasks().tasks
        with client.stream("again") as stream:
            assert "".join(update.text for update in stream) == "again"
            assert stream.task is not None
        assert client.card().name == "echo"
        assert {skill.id for skill in client.extended_card().skills} >= {"echo"}
        with pytest.raises(errors.TaskNotFound):
            client.get_task("nothing")
        with pytest.raises(errors.TaskNotCancelable):
            client.cancel_task(task.id)


def test_a_webhook_is_kept_without_async(server: Server) -> None:
    with SyncClient(f"{server.url}/agents/asks/", token=server.owner) as client:
        task = client.send("one")
        assert isinstance(task, Task)
        made = client.create_push_config(task.id, "http://127.0.0.1:65001/hook")
        assert made.id
        assert client.get_push_config(task.id, made.id) == made
        assert client.list_push_configs(task.id).configs == (made,)
        client.delete_push_config(task.id, made.id)
        assert client.list_push_configs(task.id).configs == ()
        for update in client.subscribe(task.id):
            assert update.state == "input_required"
            break
        assert client.cancel_task(task.id).status.state == "canceled"


def test_a_closed_client_may_be_closed_again_and_calls_nothing() -> None:
    with SyncClient("http://127.0.0.1:1") as client:
        client.close()
        with pytest.raises(RuntimeError, match="closed"):
            client.get_task("t")


ASYNC_ONLY = {"follow", "found_card", "leave_streams", "link", "links", "page"}
"""Methods for the commands, for tests and for the client without `async`, beyond those that docs/client.md lists."""


def test_the_client_without_async_has_the_same_methods_and_arguments() -> None:
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if name.startswith("_") or name in ASYNC_ONLY:
            continue
        ours = inspect.signature(getattr(SyncClient, name)).parameters
        if not any(one.kind is one.VAR_KEYWORD for one in ours.values()):
            assert list(ours) == list(inspect.signature(method).parameters), name


def test_the_tasks_of_all_pages_are_listed_without_async(server: Server) -> None:
    with SyncClient(f"{server.url}/agents/echo/", token=server.owner) as client:
        sent = [client.send(f"number {number}") for number in range(3)]
        ids = [task.id for task in sent if isinstance(task, Task)]
        listed = []
        for task in client.all_tasks(page_size=1):
            listed.append(task.id)
            if len(listed) == 3:
                break
        assert sorted(listed) == sorted(ids)


def test_a_wrong_option_leaves_nothing_open() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        SyncClient("http://127.0.0.1:1/", nonsense=True)
