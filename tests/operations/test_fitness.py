"""Fitness of a message for an agent: media types both ways, extensions, tenants."""

from typing import Any

import pytest
from msgspec.structs import replace

from a2a.errors import ContentTypeNotSupported, ExtensionSupportRequired, InvalidParams, TaskNotFound
from a2a.preferences import preferences_of
from a2a.requests import CancelTask, GetTask, ListTasks, SendMessage, StreamMessage, SubscribeToTask
from a2a.run import Run
from a2a.states import TaskState
from a2a.types import Part
from tasks_app.models import Task
from tasks_app.operations import Context, perform
from tests.conftest import Person
from tests.operations.asking import ask, message, send, sent, shown, text_of
from tests.support.agents import GEO, TRACE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def nothing_stored() -> bool:
    return not Task.objects.exists()


PNG = Part(raw=b"\x89PNG", media_type="image/png")


# -------------------------------------------------------------- media types


@pytest.mark.parametrize(
    ("part", "agent", "kind"),
    [
        (PNG, "bench", "image/png"),
        (Part(raw=b"a"), "pictures", "application/octet-stream"),
        (Part(url="https://example.org/a"), "bench", "application/octet-stream"),
        (Part(data={}), "pictures", "application/json"),
        (Part(text="# T", media_type="text/markdown"), "bench", "text/markdown"),
        (Part(text="t", media_type="nonsense\r\nX: y"), "bench", "nonsenseX: y"),
        (Part(text="t", media_type="x/" + "y" * 100_000), "bench", "x/" + "y" * 98),
    ],
)
def test_a_part_that_the_agent_does_not_take_is_named(owner: Person, part: Part, agent: str, kind: str) -> None:
    with pytest.raises(ContentTypeNotSupported) as refused:
        send(owner, message(parts=(Part(text="look"), part)), agent)
    assert refused.value.facts["part"] == "message.parts[1]"
    assert refused.value.facts["mediaType"] == kind
    assert "text/plain" in refused.value.facts["supported"]
    assert refused.value.facts["detail"] == f"the agent accepts {refused.value.facts['supported']}, not {kind}"
    assert nothing_stored()


@pytest.mark.parametrize("kind", ["image/png", "IMAGE/GIF", "image/svg+xml; charset=utf-8", "text/plain;format=flowed"])
def test_a_part_that_the_agent_takes_is_taken(owner: Person, kind: str) -> None:
    task = sent(owner, message(parts=(Part(text="look"), Part(raw=b"a", media_type=kind))), "pictures")
    assert text_of(task) == "2 parts for anybody"


def test_the_next_message_of_a_task_is_held_to_the_same(owner: Person) -> None:
    task = sent(owner, "one", "asks")
    with pytest.raises(ContentTypeNotSupported):
        send(owner, message(parts=(PNG,), task_id=task.id))
    assert shown(ask(owner, GetTask(id=task.id))) == task


@pytest.mark.parametrize(
    "wanted", [("text/csv",), ("video/mp4", "application/*"), ("*/*",), ("Text/CSV; header=present",), ("*",)]
)
def test_a_caller_that_takes_something_of_the_agents_is_served(owner: Person, wanted: tuple[str, ...]) -> None:
    task = sent(owner, "hello", "pictures", accepted_output_modes=wanted)
    assert text_of(task) == f"1 parts for {','.join(wanted)}"


@pytest.mark.parametrize("wanted", [("text/plain",), ("video/*", "image/png"), ("",), ("nonsense", "a/b/c")])
def test_a_caller_that_takes_nothing_of_the_agents_is_told(owner: Person, wanted: tuple[str, ...]) -> None:
    with pytest.raises(ContentTypeNotSupported) as refused:
        send(owner, "hello", "pictures", accepted_output_modes=wanted)
    assert refused.value.facts["field"] == "configuration.acceptedOutputModes"
    assert refused.value.facts["supported"] == "application/pdf, text/csv"
    detail = f"the agent returns application/pdf, text/csv, and the caller accepts {', '.join(wanted)}"
    assert refused.value.facts["detail"] == detail


def test_a_hundred_wanted_media_types_are_enough(owner: Person) -> None:
    assert sent(owner, "hello", "bench", accepted_output_modes=("text/plain",) * 100)
    with pytest.raises(InvalidParams) as refused:
        send(owner, "hello", "bench", accepted_output_modes=("text/plain",) * 101)
    assert refused.value.violations[0][0] == "configuration.acceptedOutputModes"


# --------------------------------------------------------------- extensions


def test_a_required_extension_is_required_of_every_message(owner: Person) -> None:
    for request in (SendMessage(message=message()), StreamMessage(message=message(), extensions=("urn:other",))):
        with pytest.raises(ExtensionSupportRequired) as refused:
            ask(owner, request, agent="demanding")
        detail = f"request {GEO} in the header A2A-Extensions"
        assert refused.value.facts == {"extension": GEO, "header": "A2A-Extensions", "detail": detail}
    assert nothing_stored()
    task = sent(owner, "go", "demanding", extensions=(GEO,))
    with pytest.raises(ExtensionSupportRequired):
        send(owner, message("here", task_id=task.id))
    assert shown(ask(owner, GetTask(id=task.id))) == task


def test_a_run_knows_what_the_newest_message_wanted(owner: Person) -> None:
    task = sent(owner, "go", "demanding", extensions=(GEO,), accepted_output_modes=("application/json",))
    assert task.status.message
    assert task.status.message.extensions == (GEO,)
    done = sent(owner, message("here", task_id=task.id), extensions=(GEO,), accepted_output_modes=("text/*",))
    assert text_of(done) == f"{GEO} for text/*"
    preferences = preferences_of(Task.objects.get().wants)
    assert (preferences.accepts, preferences.extensions) == (("text/*",), (GEO,))


def test_a_message_that_wants_nothing_forgets_what_the_one_before_wanted(owner: Person) -> None:
    task = sent(owner, "one", "asks", accepted_output_modes=("text/plain",))
    sent(owner, message("two", task_id=task.id))
    preferences = preferences_of(Task.objects.get().wants)
    assert (preferences.accepts, preferences.extensions) == ((), ())


def test_an_agent_says_which_extensions_had_a_part(owner: Person) -> None:
    task = sent(owner, "hello", "extended", extensions=(TRACE, "urn:unknown", GEO))
    (artifact,) = task.artifacts
    assert text_of(task) == f"{GEO} {TRACE}"
    assert (artifact.extensions, artifact.metadata) == ((GEO,), {GEO: {"lat": 1}})
    (said,) = [said for said in task.history if said.extensions]
    assert (said.extensions, said.metadata) == ((TRACE,), {TRACE: "t"})
    assert text_of(sent(owner, "hello", "extended")) == "none"


def test_the_extensions_of_a_stream_are_known_before_it_begins(owner: Person) -> None:
    context = Context(caller=owner.caller, agent="extended")
    from asgiref.sync import async_to_sync

    async_to_sync(perform)(StreamMessage(message=message(), extensions=(GEO,)), context)
    assert context.extensions == (GEO,)


def test_an_agent_cannot_speak_of_an_extension_that_is_not_on_its_card() -> None:
    from a2a.agents import registry

    known = registry.get("extended")
    assert known
    run = Run(known, task_id="t", context_id="c", message=message())
    for say in (run.status, run.ask, run.ask_credentials, run.artifact, run.reply, run.reject):
        with pytest.raises(ValueError, match="does not declare the extension urn:other"):
            say("hello", extensions=["urn:other"])


# ------------------------------------------------------------------ tenants

WISHES: dict[str, Any] = {
    "send": lambda task: SendMessage(message=message()),
    "stream": lambda task: StreamMessage(message=message()),
    "follow-up": lambda task: SendMessage(message=message(task_id=task), return_immediately=True),
    "get": lambda task: GetTask(id=task),
    "list": lambda task: ListTasks(),
    "subscribe": lambda task: SubscribeToTask(id=task),
    "cancel": lambda task: CancelTask(id=task),
}


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("tenant", [None, "home"])
def test_a_tenant_may_be_left_out_or_be_the_callers_own(owner: Person, wish: str, tenant: str | None) -> None:
    task = sent(owner, "one", "asks")
    assert ask(owner, replace(WISHES[wish](task.id), tenant=tenant))


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("tenant", ["abroad", "nowhere", "HOME", "home ", "h" * 10_000, "\u202e"])
def test_any_other_tenant_is_as_unknown_as_a_foreign_task(
    owner: Person, stranger: Person, wish: str, tenant: str
) -> None:
    task = sent(owner, "one", "asks")
    with pytest.raises(TaskNotFound) as refused:
        ask(owner, replace(WISHES[wish](task.id), tenant=tenant))
    about = {} if wish in {"send", "stream", "list"} else {"taskId": task.id}
    assert refused.value.facts == about
    assert shown(ask(owner, GetTask(id=task.id))) == task
    assert Task.objects.count() == 1
    assert task.status.state is TaskState.INPUT_REQUIRED
