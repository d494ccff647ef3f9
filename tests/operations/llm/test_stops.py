"""Calls to the model that are stopped, or made again."""

from datetime import timedelta

import pytest

from a2a.requests import CancelTask
from tasks_app import clock, models
from tasks_app.runner.runner import runner
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, sent, shown, text_of
from tests.operations.llm.endpoint import BUSY, DONE, INSIDE, Call, Endpoint, piece, sentence, talks, task_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.parametrize("streaming", [True, False], ids=["in-mid-stream", "before-the-first-byte"])
def test_cancel_closes_the_call(owner: Person, endpoint: Endpoint, streaming: bool) -> None:
    def script(call: Call) -> None:
        if streaming:
            call.begin()
            call.write(piece("One"))
        call.wait_for_close()

    endpoint.script = script
    task = sent(owner, "count", "llm", return_immediately=True)
    if streaming:
        until(lambda: models.Event.objects.filter(kind="artifactUpdate").exists(), "the first word")
    until(lambda: endpoint.calls, "the call")
    assert shown(ask(owner, CancelTask(id=task.id))).status.state == "canceled"
    assert endpoint.calls[0].closed.wait(PATIENCE)
    assert models.Task.objects.get().state == "canceled"


def test_an_interrupted_answer_is_asked_for_again_without_our_notice_of_it(
    owner: Person, asked_again: Endpoint
) -> None:
    endpoint = asked_again
    endpoint.script = Call.wait_for_close
    task = sent(owner, "count", "llm", return_immediately=True)
    until(lambda: endpoint.calls, "the call")
    endpoint.script = talks(piece("Again"), DONE)
    runner.running[task.id].release()
    assert endpoint.calls[0].closed.wait(PATIENCE)
    until(lambda: models.Task.objects.get().state == "completed", "the second try")
    done = task_of(owner, task.id)
    assert text_of(done) == "Again"
    assert done.history[-1].text.startswith("Interrupted")
    assert endpoint.calls[1].body == endpoint.calls[0].body


def test_an_endpoint_that_is_busy_for_a_while_is_asked_again(owner: Person, asked_again: Endpoint) -> None:
    answers = iter([talks(INSIDE, status=429), talks(piece("So far")), talks(piece("Hello"), DONE)])
    asked_again.script = lambda call: next(answers)(call)  # noqa: PLW0108  # the next one with each call
    task = sent(owner, "hello", "llm")
    assert (task.status.state, text_of(task)) == ("completed", "Hello")
    assert [message.text for message in task.history[1:]] == [
        f"Attempt 1 of 3 failed: The language model's endpoint {BUSY} (HTTP 429); tried again in 0.0 s.",
        "Attempt 2 of 3 failed: The language model's answer broke off; tried again in 0.0 s.",
    ]
    assert asked_again.calls[0].body == asked_again.calls[2].body


def test_an_endpoint_that_says_when_to_come_back_is_asked_then(owner: Person, asked_again: Endpoint) -> None:
    asked_again.script = busy_for_an_hour
    sent(owner, "hello", "llm", return_immediately=True)
    until(models.Run.objects.exists, "the first attempt")
    row = models.Task.objects.get()
    assert row.not_before
    assert timedelta(minutes=59) < row.not_before - clock.now() < timedelta(minutes=73)


def busy_for_an_hour(call: Call) -> None:
    call.handler.send_response(503)
    call.handler.send_header("Retry-After", "3600")
    call.handler.send_header("Content-Length", "0")
    call.handler.end_headers()


def test_an_endpoint_that_refuses_for_good_is_asked_once(owner: Person, asked_again: Endpoint) -> None:
    asked_again.script = talks("{}", status=401)
    assert sentence(sent(owner, "hello", "llm")).endswith("(HTTP 401).")
    assert len(asked_again.calls) == 1
