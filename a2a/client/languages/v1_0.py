"""A2A 1.0 on the client's side. The server's side is in a2a/dialects/v1_0.py."""

from typing import Any

from a2a.client.answers import ConfigPage, TaskPage
from a2a.client.cards import decode_card
from a2a.client.language import ClientLanguage, Operation
from a2a.client.reading import Form, config
from a2a.dialects.json.json_1_0 import ROLES_BACK, STATES, decode_part, decode_state, encode_message
from a2a.dialects.v1_0 import DIALECT, ROUTES
from a2a.errors import InvalidParams
from a2a.extensions import HEADER
from a2a.language import VERSION_HEADER
from a2a.params import write_time
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
from a2a.types import Json, Message, PushConfig, Task

FORM = Form(part=decode_part, roles=ROLES_BACK, state=decode_state)

# ---------------------------------------------------------------- requests


def filled(**members: Any) -> Json:
    """Return the members that are not empty."""
    return {name: value for name, value in members.items() if value not in (None, "", (), [])}


def _tenant(request: Request) -> Json:
    return filled(tenant=request.tenant)


def check_unnamed(request: SendMessage) -> None:
    """Check that a message names no agent beside its metadata. Raises InvalidParams, since another agent would answer.

    In A2A the address is that of the agent.
    """
    if request.agent is not None:
        remedy = "call the address of the agent, or name it in the metadata if the server reads it there"
        raise InvalidParams(("agent", f"has no place in A2A: {remedy}"))


def encode_send(request: SendMessage) -> Json:
    """Return the params of a message. Raises InvalidParams for an agent by its name."""
    check_unnamed(request)
    webhook = request.push_config
    configuration = filled(
        acceptedOutputModes=list(request.accepted_output_modes),
        historyLength=request.history_length,
        returnImmediately=request.return_immediately or None,
        taskPushNotificationConfig=encode_config(webhook) if webhook else None,
    )
    return (
        _tenant(request)
        | {"message": encode_message(request.message)}
        | filled(configuration=configuration or None, metadata=request.metadata)
    )


def encode_get(request: GetTask) -> Json:
    return _tenant(request) | {"id": request.id} | filled(historyLength=request.history_length)


def encode_list(request: ListTasks) -> Json:
    return _tenant(request) | filled(
        contextId=request.context_id,
        status=STATES[request.state] if request.state else None,
        pageSize=request.page_size,
        pageToken=request.page_token,
        historyLength=request.history_length,
        statusTimestampAfter=write_time(request.since) if request.since else None,
        includeArtifacts=request.include_artifacts or None,
    )


def encode_cancel(request: CancelTask) -> Json:
    return _tenant(request) | {"id": request.id} | filled(metadata=request.metadata)


def encode_subscribe(request: SubscribeToTask) -> Json:
    return _tenant(request) | {"id": request.id}


def encode_config(webhook: PushConfig) -> Json:
    authentication = filled(scheme=webhook.schemes[0] if webhook.schemes else None, credentials=webhook.credentials)
    return {"url": webhook.url} | filled(id=webhook.id, token=webhook.token, authentication=authentication or None)


def encode_create(request: CreatePushConfig) -> Json:
    return _tenant(request) | {"taskId": request.task_id} | encode_config(request.config)


def encode_config_id(request: GetPushConfig | DeletePushConfig) -> Json:
    return _tenant(request) | {"taskId": request.task_id, "id": request.id or ""}


def encode_configs(request: ListPushConfigs) -> Json:
    paging = filled(pageSize=request.page_size or None, pageToken=request.page_token)
    return _tenant(request) | {"taskId": request.task_id} | paging


# ----------------------------------------------------------------- answers


def decode_answer(wire: Json) -> Task | Message:
    return FORM.task(wire["task"]) if wire.get("task") is not None else FORM.message(wire["message"])


def decode_page(wire: Json) -> TaskPage:
    """Return a page. ProtoJSON omits empty members."""
    tasks = tuple(FORM.task(task) for task in wire.get("tasks") or ())
    total = wire.get("totalSize")
    return TaskPage(tasks=tasks, next_page_token=wire.get("nextPageToken") or "", total_size=total and int(total))


def decode_config(wire: Json) -> PushConfig:
    scheme = (wire.get("authentication") or {}).get("scheme")
    return config(wire, wire.get("taskId") or "", (scheme,) if scheme else ())


def decode_configs(wire: Json) -> ConfigPage:
    configs = tuple(decode_config(one) for one in wire.get("configs") or ())
    return ConfigPage(configs=configs, next_page_token=wire.get("nextPageToken") or "")


def decode_nothing(wire: Any) -> None:
    """Accept any result: servers answer null, an empty object, or nothing."""


LANGUAGE = ClientLanguage(
    name=DIALECT.name,
    version=DIALECT.version,
    headers={VERSION_HEADER: DIALECT.version},
    extensions_header=HEADER,
    operations={
        SendMessage: Operation(method="SendMessage", encode=encode_send, decode=decode_answer),
        StreamMessage: Operation(method="SendStreamingMessage", encode=encode_send, decode=FORM.update),
        GetTask: Operation(method="GetTask", encode=encode_get, decode=FORM.task),
        ListTasks: Operation(method="ListTasks", encode=encode_list, decode=decode_page),
        CancelTask: Operation(method="CancelTask", encode=encode_cancel, decode=FORM.task),
        SubscribeToTask: Operation(method="SubscribeToTask", encode=encode_subscribe, decode=FORM.update),
        CreatePushConfig: Operation(
            method="CreateTaskPushNotificationConfig", encode=encode_create, decode=decode_config
        ),
        GetPushConfig: Operation(method="GetTaskPushNotificationConfig", encode=encode_config_id, decode=decode_config),
        ListPushConfigs: Operation(
            method="ListTaskPushNotificationConfigs", encode=encode_configs, decode=decode_configs
        ),
        DeletePushConfig: Operation(
            method="DeleteTaskPushNotificationConfig", encode=encode_config_id, decode=decode_nothing
        ),
        GetExtendedCard: Operation(method="GetExtendedAgentCard", encode=_tenant, decode=decode_card),
    },
    update=FORM.update,
    routes=ROUTES,
)
