"""A2A 0.3 on the client's side. The server's side is in a2a/dialects/v0_3.py."""

from a2a.client.answers import ConfigPage, TaskPage
from a2a.client.cards import decode_card
from a2a.client.language import ClientLanguage, Operation
from a2a.client.languages.v1_0 import check_unnamed, decode_nothing, filled
from a2a.client.reading import Form, config
from a2a.client.updates import Update
from a2a.dialects.json.json_0_x import ROLES, STATES, decode_part, decode_state, encode_message
from a2a.dialects.v0_3 import DIALECT
from a2a.errors import InvalidParams
from a2a.language import VERSION_HEADER
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.types import Json, Message, PushConfig, Task

FORM = Form(part=decode_part, roles=ROLES, state=decode_state)

# ---------------------------------------------------------------- requests


def encode_send(request: SendMessage) -> Json:
    """Return the params of a message. Raises InvalidParams for an agent by its name."""
    check_unnamed(request)
    webhook = request.push_config
    configuration = {"blocking": not request.return_immediately} | filled(
        acceptedOutputModes=list(request.accepted_output_modes),
        historyLength=request.history_length,
        pushNotificationConfig=encode_config(webhook) if webhook else None,
    )
    message = {"message": encode_message(request.message), "configuration": configuration}
    return message | filled(metadata=request.metadata)


def encode_get(request: GetTask) -> Json:
    return {"id": request.id} | filled(historyLength=request.history_length)


def encode_cancel(request: CancelTask) -> Json:
    return {"id": request.id} | filled(metadata=request.metadata)


def encode_resubscribe(request: SubscribeToTask) -> Json:
    return {"id": request.id}


def encode_list(request: ListTasks) -> Json:
    """Return the params of tasks/list, which is an addition of this project to 0.x (docs/protocol.md#listing)."""
    if request.since is not None:
        raise InvalidParams(("since", "has no place in a list of 0.x"))
    return filled(
        contextId=request.context_id,
        status=STATES[request.state] if request.state else None,
        limit=request.page_size,
        cursor=request.page_token,
        historyLength=request.history_length,
        includeArtifacts=request.include_artifacts or None,
    )


def encode_config(webhook: PushConfig) -> Json:
    schemes = {"schemes": list(webhook.schemes)} if webhook.schemes else {}
    authentication = schemes | filled(credentials=webhook.credentials)
    return {"url": webhook.url} | filled(id=webhook.id, token=webhook.token, authentication=authentication or None)


def encode_set(request: CreatePushConfig) -> Json:
    return {"taskId": request.task_id, "pushNotificationConfig": encode_config(request.config)}


def encode_config_id(request: GetPushConfig | DeletePushConfig) -> Json:
    return {"id": request.task_id} | filled(pushNotificationConfigId=request.id)


def encode_configs(request: ListPushConfigs) -> Json:
    return {"id": request.task_id}


def encode_nothing(request: GetExtendedCard) -> Json:
    return {}


# ----------------------------------------------------------------- answers


def kind_of(wire: Json) -> str:
    """Return the kind of an object, whose member `kind` samples of A2A omit (docs/protocol.md#leniency)."""
    if wire.get("kind"):
        return str(wire["kind"])
    if "parts" in wire:
        return "message"
    if "artifact" in wire:
        return "artifact-update"
    return "status-update" if "taskId" in wire else "task"


def decode_answer(wire: Json) -> Task | Message:
    return FORM.message(wire) if kind_of(wire) == "message" else FORM.task(wire)


UPDATES = {
    "task": FORM.task_update,
    "message": FORM.message_update,
    "status-update": FORM.status_update,
    "artifact-update": FORM.artifact_update,
}


def decode_update(wire: Json) -> Update:
    return UPDATES[kind_of(wire)](wire)


def decode_page(wire: Json) -> TaskPage:
    tasks = tuple(FORM.task(task) for task in wire.get("tasks") or ())
    return TaskPage(tasks=tasks, next_page_token=wire.get("nextCursor") or "", total_size=wire.get("totalSize"))


def decode_config(wire: Json) -> PushConfig:
    inner = wire["pushNotificationConfig"]
    schemes = (inner.get("authentication") or {}).get("schemes") or ()
    return config(inner, wire.get("taskId") or "", tuple(schemes))


def decode_configs(wire: list[Json]) -> ConfigPage:
    return ConfigPage(configs=tuple(decode_config(one) for one in wire), next_page_token="")


_PUSH = "tasks/pushNotificationConfig"
CARD: Operation = Operation(method="agent/getAuthenticatedExtendedCard", encode=encode_nothing, decode=decode_card)
LANGUAGE = ClientLanguage(
    name=DIALECT.name,
    version=DIALECT.version,
    headers={VERSION_HEADER: DIALECT.version},
    extensions_header=DIALECT.extensions_header,
    operations={
        SendMessage: Operation(method="message/send", encode=encode_send, decode=decode_answer),
        StreamMessage: Operation(method="message/stream", encode=encode_send, decode=decode_update),
        GetTask: Operation(method="tasks/get", encode=encode_get, decode=FORM.task),
        ListTasks: Operation(method="tasks/list", encode=encode_list, decode=decode_page),
        CancelTask: Operation(method="tasks/cancel", encode=encode_cancel, decode=FORM.task),
        SubscribeToTask: Operation(method="tasks/resubscribe", encode=encode_resubscribe, decode=decode_update),
        CreatePushConfig: Operation(method=f"{_PUSH}/set", encode=encode_set, decode=decode_config),
        GetPushConfig: Operation(method=f"{_PUSH}/get", encode=encode_config_id, decode=decode_config),
        ListPushConfigs: Operation(method=f"{_PUSH}/list", encode=encode_configs, decode=decode_configs),
        DeletePushConfig: Operation(method=f"{_PUSH}/delete", encode=encode_config_id, decode=decode_nothing),
        GetExtendedCard: CARD,
    },
    update=decode_update,
    begins_with_task=False,
    default_webhook=True,
    question_ends=True,
)
