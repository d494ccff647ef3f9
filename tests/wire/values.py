"""The values behind the golden answers, events, errors and cards; every version encodes the same ones."""

from datetime import UTC, datetime

from msgspec.structs import replace

from a2a import errors
from a2a.answers import Answer, CardAnswer, Frame, PushConfigPage, TaskPage
from a2a.dialects.json.json_1_0 import document, event_document, task_of
from a2a.documents import TaskDocument
from a2a.events import ArtifactAdded, Event, StatusChanged, TaskCreated
from a2a.states import TaskState
from a2a.types import (
    Artifact,
    Card,
    Extension,
    Interface,
    Message,
    Part,
    Provider,
    PushConfig,
    Role,
    SecurityScheme,
    Skill,
    Status,
    Task,
)

TASK = "5b0f7c1e-6a53-4a7e-9f0b-1d2c3b4a5e6f"
CONTEXT = "c7d1e0aa-2f4b-4e1d-8a9c-0b1c2d3e4f50"
ARTIFACT = "f0e1d2c3-0001-4000-8000-00000000000a"
FIRST = "a1b2c3d4-0001-4000-8000-000000000001"
SECOND = "a1b2c3d4-0002-4000-8000-000000000002"


def at(second: int) -> datetime:
    return datetime(2026, 3, 2, 9, 15, second, 250_000, tzinfo=UTC)


def text(words: str) -> Part:
    return Part(text=words, media_type="text/plain")


ASKED = Message(
    message_id=FIRST,
    role=Role.USER,
    parts=(text("Summarise the attached invoice."),),
    context_id=CONTEXT,
    task_id=TASK,
)
QUESTION = Message(
    message_id=SECOND,
    role=Role.AGENT,
    parts=(text("Which currency should the total use?"),),
    context_id=CONTEXT,
    task_id=TASK,
)
HELLO = Message(message_id=SECOND, role=Role.AGENT, parts=(text("Hello."),), context_id=CONTEXT)
SUMMARY = Artifact(
    artifact_id=ARTIFACT,
    name="summary",
    description="Invoice summary",
    parts=(
        text("Total due: 42.00 EUR"),
        Part(data={"total": 42, "currency": "EUR"}, media_type="application/json"),
    ),
)


def task(
    state: TaskState, second: int = 5, said: Message | None = None, artifacts: tuple[Artifact, ...] = ()
) -> TaskDocument:
    status = Status(state=state, timestamp=at(second), message=said)
    value = Task(id=TASK, context_id=CONTEXT, status=status, artifacts=artifacts, history=(ASKED,))
    return document(value, 1)


COMPLETED = Answer(task=task(TaskState.COMPLETED, artifacts=(SUMMARY,)))
INPUT_REQUIRED = Answer(task=task(TaskState.INPUT_REQUIRED, said=QUESTION))
REPLIED = Answer(message=HELLO)
WORKING = Answer(task=task(TaskState.WORKING), history_length=1)
NO_HISTORY = Answer(task=task(TaskState.WORKING), history_length=0)
CANCELED = Answer(task=task(TaskState.CANCELED))
PAGE = TaskPage(
    tasks=(TaskDocument(id=TASK, context_id=CONTEXT, seq=2, state="working", status=task(TaskState.WORKING).status),),
    next_page_token="b3BhcXVl",
    total_size=2,
)
EMPTY_PAGE = TaskPage(tasks=(), next_page_token="", total_size=0)


def status(state: TaskState, second: int, said: Message | None = None) -> StatusChanged:
    return StatusChanged(status=Status(state=state, timestamp=at(second), message=said))


CHUNKS = (
    ArtifactAdded(artifact=Artifact(artifact_id=ARTIFACT, name="summary", parts=(text("Total due: "),))),
    ArtifactAdded(artifact=Artifact(artifact_id=ARTIFACT, parts=(text("42.00 EUR"),)), append=True, last_chunk=True),
)
WORKS = status(TaskState.WORKING, 2)
ASKS = status(TaskState.INPUT_REQUIRED, 3, QUESTION)
COMPLETES = status(TaskState.COMPLETED, 5)


def stream(first: TaskDocument, *events: Event) -> tuple[Frame, ...]:
    """Return a snapshot and the rows of the log after it."""
    rows = [event_document(event, task_id=TASK, context_id=CONTEXT, seq=seq) for seq, event in enumerate(events, 2)]
    return (first, *rows)


DONE = task(TaskState.COMPLETED, artifacts=(SUMMARY,))
CREATES_EVENT = event_document(TaskCreated(task=task_of(DONE)), task_id=TASK, context_id=CONTEXT, seq=1)
LAST_CHUNK = event_document(
    ArtifactAdded(artifact=Artifact(artifact_id=ARTIFACT, parts=(text("42.00 EUR"),)), append=True, last_chunk=True),
    task_id=TASK,
    context_id=CONTEXT,
    seq=4,
)
COMPLETES_EVENT = event_document(COMPLETES, task_id=TASK, context_id=CONTEXT, seq=5)

READ_WEBHOOK = PushConfig(
    id="push-cfg-1", task_id=TASK, url="https://client.example.com/hooks/a2a", schemes=("Bearer",)
)
"""Neither its token nor its credentials are read back (docs/protocol.md#secrets)."""
WRITTEN_WEBHOOK = replace(READ_WEBHOOK, token="tok-9f2c")
WEBHOOKS = PushConfigPage(configs=(READ_WEBHOOK,), next_page_token="")

STREAM_COMPLETED = stream(task(TaskState.SUBMITTED, 1), WORKS, *CHUNKS, COMPLETES)
STREAM_INPUT_REQUIRED = stream(task(TaskState.SUBMITTED, 1), ASKS)
STREAM_MESSAGE: tuple[Frame, ...] = (HELLO,)
STREAM_RESUMED = stream(task(TaskState.WORKING, 2), *CHUNKS, COMPLETES)

ERRORS: dict[str, errors.Error] = {
    "error.parse-error": errors.ParseError(),
    "error.invalid-request": errors.InvalidRequest(),
    "error.method-not-found": errors.MethodNotFound(),
    "error.internal-error": errors.Internal(),
    "error.invalid-agent-response": errors.InvalidAgentResponse(),
    "error.push-not-supported": errors.PushNotSupported(),
}
ERRORS_0_X = ERRORS | {
    "error.invalid-params": errors.InvalidParams(),
    "error.task-not-found": errors.TaskNotFound(),
    "error.task-not-cancelable": errors.TaskNotCancelable(),
    "error.unsupported-operation": errors.UnsupportedOperation(),
    "error.content-type-not-supported": errors.ContentTypeNotSupported(),
}
ERRORS_0_3 = ERRORS_0_X | {"error.extended-card-not-configured": errors.ExtendedCardNotConfigured()}
ERRORS_1_0 = ERRORS | {
    "error.extended-card-not-configured": errors.ExtendedCardNotConfigured(),
    "error.invalid-params": errors.InvalidParams(("message.parts", "At least one part is required")),
    "error.task-not-found": errors.TaskNotFound(taskId=TASK),
    "error.task-not-cancelable": errors.TaskNotCancelable(taskId=TASK),
    "error.unsupported-operation": errors.UnsupportedOperation(taskId=TASK),
    "error.content-type-not-supported": errors.ContentTypeNotSupported(mediaType="video/mp4"),
    "error.extension-support-required": errors.ExtensionSupportRequired(extension="https://example.com/ext/geo/v1"),
    "error.version-not-supported": errors.VersionNotSupported(requestedVersion="2.0", supportedVersions="0.2,0.3,1.0"),
}

URL = "https://agent.example.com/jsonrpc"
CARD = Card(
    name="Invoice Agent",
    description="Reads invoices and answers questions about them.",
    version="2.4.1",
    interfaces=(
        Interface(url=URL, binding="JSONRPC", version="1.0"),
        Interface(url="https://agent.example.com/rest", binding="HTTP+JSON", version="1.0"),
        Interface(url="https://agent.example.com/v1", binding="HTTP+JSON", version="0.3"),
        Interface(url=URL, binding="JSONRPC", version="0.3"),
    ),
    skills=(
        Skill(
            id="summarise",
            name="Summarise invoice",
            description="Produces a short summary.",
            tags=("invoice", "finance"),
            examples=("Summarise this invoice.",),
            input_modes=("application/pdf",),
            output_modes=("text/plain",),
        ),
        Skill(
            id="audit",
            name="Prüfpfad",
            description="Lists who has read an invoice.",
            tags=("audit",),
            scopes=("tasks:read", "audit"),
        ),
    ),
    input_modes=("text/plain", "application/pdf"),
    output_modes=("text/plain", "application/json"),
    security_schemes={
        "bearer": SecurityScheme(http_scheme="Bearer"),
        "key": SecurityScheme(header="X-API-Key", description="The same key"),
    },
    scopes=("tasks:read", "tasks:write"),
    extended_card=True,
    provider=Provider(organization="Example GmbH", url="https://www.example.com"),
    documentation_url="https://agent.example.com/docs",
    icon_url="https://agent.example.com/icon.png",
    extensions=(
        Extension(
            uri="https://example.com/ext/geo/v1",
            description="Where it was bought",
            required=True,
            params={"precision": 3},
        ),
        Extension(uri="urn:example:trace"),
    ),
)
SIGNATURE = {"protected": "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ", "signature": "c2lnbmF0dXJl"}
EXTENDED_CARD = CardAnswer(card=CARD, sign=lambda shape: shape | {"signatures": [SIGNATURE]})
