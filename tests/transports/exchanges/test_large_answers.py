"""Large answers about the memory and workflows: what they are about is recorded, and not what they hold."""

import json
from typing import Any

import pytest

from a2a.workflows import WorkflowDocument
from tasks_app.exchanges.responses import response_text
from tasks_app.off_loop import off_loop
from tasks_app.transports import answers
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import Post, call, old

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
TEXT = "much " * 4_000


def last_record(number: int) -> Any:
    """Return what is recorded of the last answer, among so many."""
    return json.loads(response_text(recorded(number)[-1]) or "null")


def test_a_large_answer_about_the_memory_is_recorded_by_names_alone(post: Post) -> None:
    names = [{"namespace": "sparc", "key": key, "version": 1} for key in ("a", "b")]
    for key, data in (("a", TEXT), ("b", TEXT), ("c", "little")):
        post(call("memory/store", {"namespace": "sparc", "key": key, "data": data}), path="/sparc")
    _, content = post(call("memory/search", {"namespace": "sparc", "text": "MUCH"}), path="/sparc")
    assert [entry["data"] for entry in json.loads(content)["result"]["entries"]] == [TEXT, TEXT]
    omitted = f"the other members, of {len(content)} bytes in all"
    assert last_record(4) == {"entries": names, "omitted": omitted}
    _, content = post(call("memory/retrieve", {"namespace": "sparc", "key": "a"}), path="/sparc")
    assert json.loads(content)["result"]["data"] == TEXT
    assert last_record(5) == {**names[0], "omitted": f"the other members, of {len(content)} bytes in all"}
    _, content = post(call("memory/retrieve", {"namespace": "sparc", "key": "c"}), path="/sparc")
    assert last_record(6) == json.loads(content), "a small answer is recorded whole"


def test_a_large_answer_about_a_workflow_is_encoded_off_the_loop_and_recorded_without_results(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = list[type]()

    async def spy(function: Any, *arguments: Any) -> Any:
        large.extend(map(type, arguments))
        return await off_loop(function, *arguments)

    monkeypatch.setattr(answers, "off_loop", spy)
    wire = old(TEXT, configuration={"sparcPhase": "specification"})
    wire["params"]["metadata"]["workflowId"] = "shop"
    post(wire, path="/sparc")
    _, content = post(call("sparc/workflow/get", {"workflowId": "shop"}), path="/sparc")
    result = json.loads(content)["result"]["phases"][0]["result"]
    assert TEXT in json.dumps(result["artifacts"])
    assert WorkflowDocument in large
    record = last_record(2)
    assert record.pop("omitted") == f"the other members, of {len(content)} bytes in all"
    assert record == {
        "workflowId": "shop",
        "state": "active",
        "phase": "specification",
        "results": [result["taskId"]],
    }
