"""The client without `async`."""

import pytest

from a2a.client import SyncClient, errors
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
