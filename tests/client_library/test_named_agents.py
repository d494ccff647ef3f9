"""The name of an agent beside a message: taken where the language has a place for it, refused in A2A."""

import pytest

from a2a.client.language import ClientLanguage
from a2a.client.languages import acp, rest_0_x, sparc, v0_2, v0_3, v1_0, vapora
from a2a.errors import InvalidParams
from a2a.requests import SendMessage, StreamMessage
from a2a.types import Message, Part, Role

MESSAGE = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
A2A = [v1_0.LANGUAGE, v0_3.LANGUAGE, v0_2.LANGUAGE, rest_0_x.LANGUAGE, sparc.LANGUAGE, vapora.LANGUAGE]


@pytest.mark.parametrize("language", A2A, ids=lambda language: language.name)
@pytest.mark.parametrize("kind", [SendMessage, StreamMessage])
def test_an_agent_by_its_name_is_refused_in_a2a(language: ClientLanguage, kind: type[SendMessage]) -> None:
    operation = language.operations[kind]
    operation.encode(kind(message=MESSAGE, metadata={"agent": "echo"}))
    with pytest.raises(InvalidParams) as refusal:
        operation.encode(kind(message=MESSAGE, agent="echo"))
    assert "agent has no place in A2A: call the address of the agent" in refusal.value.message


def test_an_agent_by_its_name_gets_the_task_in_acp() -> None:
    encode = acp.LANGUAGE.operations[SendMessage].encode
    assert encode(SendMessage(message=MESSAGE, agent="echo"))["assignTo"] == "echo"
    assert "assignTo" not in encode(SendMessage(message=MESSAGE))
