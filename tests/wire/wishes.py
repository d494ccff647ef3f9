"""The requests that the golden ones decode to."""

from datetime import UTC, datetime

from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Request,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.states import TaskState
from a2a.types import Message, Part, PushConfig, Role
from tests.wire.values import CONTEXT, FIRST, TASK

THIRD = "a1b2c3d4-0003-4000-8000-000000000003"
GEO = "https://example.com/ext/geo/v1"
FILES = (
    Part(raw=b"%PDF-1.7\n", filename="invoice.pdf", media_type="application/pdf"),
    Part(url="https://files.example.com/terms.pdf", filename="terms.pdf", media_type="application/pdf"),
)
MODES = ("text/plain", "application/json")


def minimal(media_type: str | None) -> Message:
    part = Part(text="Summarise the attached invoice.", media_type=media_type)
    return Message(message_id=FIRST, role=Role.USER, parts=(part,))


def following(media_type: str | None) -> Message:
    part = Part(text="Summarise the attached invoice.", media_type=media_type)
    return Message(message_id=THIRD, role=Role.USER, parts=(part,), task_id=TASK, context_id=CONTEXT)


def full(media_type: str | None, *data: Part) -> Message:
    return Message(
        message_id=FIRST,
        role=Role.USER,
        parts=(Part(text="Summarise the attached invoice.", media_type=media_type), *FILES, *data),
        extensions=(GEO,),
        reference_task_ids=("0d0c0b0a-1111-4222-8333-444455556666",),
        metadata={GEO: {"lat": 1.5, "lon": 2.5}},
    )


def webhook(path: str) -> PushConfig:
    return PushConfig(
        id="push-cfg-1",
        url="https://client.example.com/hooks/a2a",
        token="tok-9f2c",
        schemes=("Bearer",),
        credentials="s3cr3t",
        path=path,
    )


REQUESTS_1_0: dict[str, Request] = {
    "SendMessage.request.minimal": SendMessage(message=minimal("text/plain")),
    "SendMessage.request.continue": SendMessage(message=following("text/plain")),
    "SendMessage.request.tenant": SendMessage(message=minimal("text/plain"), tenant="acme"),
    "SendMessage.request.full": SendMessage(
        message=full(
            "text/plain",
            Part(data={"locale": "de-DE"}, media_type="application/json", metadata={"source": "form"}),
            Part(data=[1, "two", None]),
        ),
        return_immediately=True,
        history_length=5,
        accepted_output_modes=MODES,
        push_config=webhook("configuration.taskPushNotificationConfig.url"),
        metadata={"trace": "abc"},
    ),
    "SendStreamingMessage.request": StreamMessage(message=minimal("text/plain")),
    "GetTask.request": GetTask(id=TASK, history_length=1),
    "GetTask.request.no-history": GetTask(id=TASK, history_length=0),
    "ListTasks.request": ListTasks(
        context_id=CONTEXT,
        state=TaskState.WORKING,
        page_size=20,
        history_length=0,
        since=datetime(2026, 3, 1, tzinfo=UTC),
    ),
    "ListTasks.request.next-page": ListTasks(context_id=CONTEXT, page_size=1, page_token="b3BhcXVl"),
    "CancelTask.request": CancelTask(id=TASK, metadata={"reason": "user"}),
    "SubscribeToTask.request": SubscribeToTask(id=TASK),
    "CreateTaskPushNotificationConfig.request": CreatePushConfig(task_id=TASK, config=webhook("url")),
    "GetTaskPushNotificationConfig.request": GetPushConfig(task_id=TASK, id="push-cfg-1"),
    "ListTaskPushNotificationConfigs.request": ListPushConfigs(task_id=TASK, page_size=10),
    "DeleteTaskPushNotificationConfig.request": DeletePushConfig(task_id=TASK, id="push-cfg-1"),
    "GetExtendedAgentCard.request": GetExtendedCard(),
    "GetExtendedAgentCard.request.no-params": GetExtendedCard(),
}

REQUESTS_0_2: dict[str, Request] = {
    "message-send.request.minimal": SendMessage(message=minimal(None)),
    "message-send.request.continue": SendMessage(message=following(None)),
    "message-send.request.full": SendMessage(
        message=full(None, Part(data={"locale": "de-DE"}, metadata={"source": "form"})),
        history_length=5,
        accepted_output_modes=MODES,
        push_config=webhook("configuration.pushNotificationConfig.url"),
        metadata={"trace": "abc"},
    ),
    "message-stream.request": StreamMessage(message=minimal(None)),
    "tasks-get.request": GetTask(id=TASK, history_length=1),
    "tasks-list.request": ListTasks(
        context_id=CONTEXT,
        state=TaskState.INPUT_REQUIRED,
        page_size=10,
        page_token="b3BhcXVl",
        history_length=2,
        include_artifacts=True,
    ),
    "tasks-cancel.request": CancelTask(id=TASK, metadata={"reason": "user"}),
    "tasks-resubscribe.request": SubscribeToTask(id=TASK, closes=True),
    "push-set.request": CreatePushConfig(task_id=TASK, config=webhook("pushNotificationConfig.url")),
    "push-get.request": GetPushConfig(task_id=TASK, id="push-cfg-1"),
    "push-get.request.task-only": GetPushConfig(task_id=TASK, id=None),
    "push-list.request": ListPushConfigs(task_id=TASK, page_size=100),
    "push-delete.request": DeletePushConfig(task_id=TASK, id="push-cfg-1"),
}
REQUESTS_0_3 = REQUESTS_0_2 | {"extended-card.request": GetExtendedCard()}
