"""The flows, errors and examples of ACP's document about tasks, over HTTP and over WebSocket.

Examples are sent as they are printed, with the ids and the agents of this server in their places. Streams and
subscriptions have files of their own beside this one.
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.seeds.acp.client import AcpClient, RpcError, checked, opened, request
from tests.seeds.acp.conftest import World

pytestmark = pytest.mark.storage
CREATE = """
{
  "jsonrpc": "2.0",
  "method": "tasks.create",
  "params": {
    "initialMessage": {
      "role": "user",
      "parts": [
        {
          "type": "TextPart",
          "content": "Please analyze the quarterly sales data and identify trends."
        }
      ]
    },
    "priority": "HIGH",
    "assignTo": "data-analysis-agent"
  },
  "id": "req-create-analysis-1642538400"
}
"""
AUTHENTICATED = """
{
  "jsonrpc": "2.0",
  "method": "tasks.create",
  "params": {
    "initialMessage": {
      "role": "user",
      "parts": [{"type": "TextPart", "content": "Analyze sales data"}]
    }
  },
  "id": "req-123"
}
"""
GET = """{"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "abc123"}, "id": "req-456"}"""
MISSING = """
{
  "jsonrpc": "2.0",
  "method": "tasks.get",
  "params": {
    "taskId": "nonexistent-task"
  },
  "id": "req-get-404"
}
"""
CANCEL = """
{
  "jsonrpc": "2.0",
  "method": "tasks.cancel",
  "params": {"taskId": "abc123"}
}
"""
BATCH = """
[
  {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "1"}, "id": "1"},
  {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "2"}, "id": "2"},
  {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "3"}, "id": "3"}
]
"""
HELLO = {"role": "user", "parts": [{"type": "TextPart", "content": "hello"}]}


def created(agent: AcpClient, name: str = "form-function") -> str:
    task = agent.task("tasks.create", {"initialMessage": HELLO, "metadata": {"agent": name}})
    assert task["status"] == "SUBMITTED"
    task_id: str = task["taskId"]
    return task_id


def refusal(agent: AcpClient, method: str, params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        agent.call(method, params)
    assert caught.value.data["suggestion"]
    return caught.value


@pytest.mark.requirement("ACP-06", "ACP-09", "ACP-13")
def test_the_example_of_a_task_creation(agent: AcpClient) -> None:
    wire = json.loads(CREATE.replace("data-analysis-agent", "echo"))
    answer = agent.post(wire)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    response = checked(answer.json())
    assert (response["id"], response["result"]["type"]) == ("req-create-analysis-1642538400", "task")
    task = response["result"]["task"]
    assert (task["status"], task["assignedAgent"], task["artifacts"]) == ("SUBMITTED", "echo", [])
    (message,) = task["messages"]
    assert message == wire["params"]["initialMessage"] | {"timestamp": message["timestamp"]}
    assert task["createdAt"].endswith("Z")
    assert agent.settled(task["taskId"], "COMPLETED")["artifacts"][0]["parts"][0]["type"] == "TextPart"


@pytest.mark.requirement("ACP-13")
def test_the_example_of_an_authenticated_request(agent: AcpClient) -> None:
    response = checked(agent.post(json.loads(AUTHENTICATED)).json())
    assert (response["id"], response["result"]["task"]["status"]) == ("req-123", "SUBMITTED")


@pytest.mark.requirement("ACP-06", "ACP-09")
def test_the_example_of_request_and_response(agent: AcpClient) -> None:
    task_id = created(agent)
    agent.settled(task_id, "COMPLETED")
    response = checked(agent.post(json.loads(GET.replace("abc123", task_id))).json())
    assert response["id"] == "req-456"
    task = response["result"]["task"]
    assert (task["taskId"], task["status"], len(task["messages"]), len(task["artifacts"])) == (
        *(task_id, "COMPLETED"),
        *(1, 1),
    )


@pytest.mark.requirement("ACP-10", "ACP-11", "ACP-12")
def test_the_example_of_a_task_that_is_not_there(agent: AcpClient) -> None:
    answer = agent.post(json.loads(MISSING))
    response = checked(answer.json())
    assert (answer.status_code, response["id"]) == (200, "req-get-404")
    error = response["error"]
    assert (error["code"], error["message"], error["data"]["taskId"]) == (-40001, "Task not found", "nonexistent-task")
    assert error["data"]["suggestion"]
    assert error["data"]["timestamp"].endswith("Z")
    assert "availableTasks" not in error["data"], "tasks of others are nobody's business"


@pytest.mark.requirement("ACP-05")
def test_the_example_of_a_notification(agent: AcpClient) -> None:
    task_id = created(agent, "asks")
    agent.settled(task_id, "INPUT_REQUIRED")
    answer = agent.post(json.loads(CANCEL.replace("abc123", task_id)))
    assert (answer.status_code, answer.content) == (204, b"")
    agent.settled(task_id, "CANCELED")


@pytest.mark.requirement("ACP-17")
def test_the_example_of_a_batch(agent: AcpClient) -> None:
    first, second = created(agent), created(agent)
    text = BATCH.replace('"taskId": "1"', f'"taskId": "{first}"').replace('"taskId": "2"', f'"taskId": "{second}"')
    answers = {response["id"]: checked(response) for response in agent.post(json.loads(text)).json()}
    assert set(answers) == {"1", "2", "3"}
    assert [answers[name]["result"]["task"]["taskId"] for name in ("1", "2")] == [first, second]
    assert answers["3"]["error"]["code"] == -40001


@pytest.mark.requirement("ACP-16")
def test_a_hundred_answers_are_matched_by_their_ids(agent: AcpClient) -> None:
    agent.token()
    calls = [request("tasks.get", {"taskId": f"nothing-{number}"}, f"req-{number}") for number in range(100)]
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda wire: (wire, checked(agent.post(wire).json())), calls))
    assert all(answer["id"] == wire["id"] for wire, answer in answers)
    assert all(answer["error"]["data"]["taskId"] == wire["params"]["taskId"] for wire, answer in answers)


@pytest.mark.requirement("ACP-22", "ACP-25")
def test_the_flow_of_a_task_that_needs_input(agent: AcpClient) -> None:
    task_id = created(agent, "asks")
    question = agent.settled(task_id, "INPUT_REQUIRED")
    assert (question["messages"][-1]["role"], question["messages"][-1]["agentId"]) == ("agent", "asks")
    agent.task("tasks.send", {"taskId": task_id, "message": HELLO})
    done = agent.settled(task_id, "COMPLETED")
    assert [message["role"] for message in done["messages"]] == ["user", "agent", "user"]
    short = agent.task("tasks.get", {"taskId": task_id, "includeMessages": False, "includeArtifacts": False})
    assert "messages" not in short
    assert "artifacts" not in short


@pytest.mark.requirement("ACP-22")
def test_a_canceled_task_is_canceled_again_and_a_completed_one_is_not(agent: AcpClient) -> None:
    task_id = created(agent, "asks")
    agent.settled(task_id, "INPUT_REQUIRED")
    for _ in range(2):
        assert agent.task("tasks.cancel", {"taskId": task_id, "reason": "No longer needed"})["status"] == "CANCELED"
    ended = created(agent)
    agent.settled(ended, "COMPLETED")
    error = refusal(agent, "tasks.cancel", {"taskId": ended})
    assert (error.code, error.message) == (-40002, "Task already completed")


@pytest.mark.requirement("ACP-10", "ACP-11")
@pytest.mark.parametrize(
    ("method", "params", "code", "message"),
    [
        ("tasks.get", {"taskId": 7}, -32602, "Invalid params"),
        ("createTask", {}, -32601, "Method not found: rpc.discover lists the methods"),
        ("tasks.nope", {}, -32601, "Method not found"),
        ("tasks.get", ["t"], -32600, "Invalid Request"),
        ("tasks.create", {"initialMessage": HELLO, "metadata": {"agent": "nobody"}}, -40005, "Agent not available"),
        ("tasks.send", {"taskId": "t", "message": HELLO}, -40001, "Task not found"),
    ],
)
def test_each_error_has_its_code_and_its_name(
    agent: AcpClient, method: str, params: Any, code: int, message: str
) -> None:
    response = checked(agent.post(request(method, params)).json())
    assert (response["error"]["code"], response["error"]["message"]) == (code, message)


@pytest.mark.requirement("ACP-11")
def test_the_example_of_wrong_params(agent: AcpClient) -> None:
    error = refusal(agent, "tasks.get", {"taskId": 7})
    assert (error.data["field"], error.data["expected"]) == ("params.taskId", "taskId (string)")
    assert error.data["received"].startswith("taskId (")


@pytest.mark.requirement("ACP-01", "ACP-03")
def test_a_body_that_is_no_request_is_refused(agent: AcpClient) -> None:
    for body, code in ((b"{", -32700), (b'"x"', -32600), (b'{"jsonrpc":"2.0"}', -32600), (b"[]", -32600)):
        response = checked(agent.post(body).json())
        assert (response["id"], response["error"]["code"]) == (None, code)
    extra = request("tasks.get", {"taskId": "t"}, "req-1") | {"extra": True}
    response = checked(agent.post(extra).json())
    assert (response["id"], response["error"]["code"]) == ("req-1", -32600)
    headers = {"Authorization": f"Bearer {agent.token()}"}
    assert agent.http.get(f"{agent.base}/jsonrpc", headers=headers).status_code == 405
    assert agent.post(extra, **{"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.requirement("ACP-13", "ACP-15")
def test_the_example_of_an_authentication_error(agent: AcpClient) -> None:
    wire = json.loads(AUTHENTICATED)
    for token, error in (("", "invalid_request"), ("nobody", "invalid_token")):
        answer = agent.post(wire, token=token)
        response = checked(answer.json())
        assert (answer.status_code, response["id"]) == (401, "req-123")
        assert (response["error"]["code"], response["error"]["message"]) == (-40007, "Authentication failed")
        data = response["error"]["data"]
        assert (data["error"], data["requiredScopes"]) == (error, ["acp:agent:identify", "acp:tasks:write"])
        assert data["tokenUrl"].endswith("/oauth2/token")
        assert data["error_description"]


@pytest.mark.requirement("ACP-14", "ACP-15")
def test_the_example_of_a_missing_scope(world: World) -> None:
    writer = world.agents["agent-writer"]
    task_id = created(writer, "asks")
    answer = writer.post(request("tasks.cancel", {"taskId": task_id}, "req-456"))
    response = checked(answer.json())
    assert (answer.status_code, response["id"]) == (403, "req-456")
    error = response["error"]
    assert (error["code"], error["message"]) == (-40008, "Insufficient OAuth2 scope")
    assert error["data"]["requiredScopes"] == ["acp:tasks:cancel"]
    assert set(error["data"]["providedScopes"]) == set(writer.scopes)
    assert error["data"]["suggestion"] == "Request additional scopes from authorization server"


@pytest.mark.requirement("ACP-14")
@pytest.mark.parametrize("method", ["tasks.create", "tasks.send", "tasks.get", "tasks.cancel"])
def test_every_method_needs_identification(world: World, method: str) -> None:
    nameless = world.agents["agent-nameless"]
    params = {"initialMessage": HELLO} if method == "tasks.create" else {"taskId": "t", "message": HELLO}
    answer = nameless.post(request(method, params))
    assert (answer.status_code, checked(answer.json())["error"]["code"]) == (403, -40008)


@pytest.mark.requirement("ACP-15")
def test_an_expired_token_is_refused_until_a_new_one_is_fetched(world: World) -> None:
    agent = world.agents["agent-reader"]
    agent.tokens.clear()
    token = agent.token()  # The server believes a token that it has seen for a second; it has not seen this one.
    agent.tokens.clear()
    world.expire_tokens()
    for other in world.agents.values():
        other.tokens.clear()
    answer = agent.post(request("tasks.get", {"taskId": "t"}, "req-9"), token=token)
    error = checked(answer.json())["error"]
    assert (answer.status_code, error["code"], error["message"]) == (401, -40009, "OAuth2 token expired")
    assert error["data"]["suggestion"]
    assert refusal(agent, "tasks.get", {"taskId": "t"}).code == -40001, "a new token is good again"


@pytest.mark.requirement("ACP-16")
def test_the_flow_over_one_websocket_connection(agent: AcpClient) -> None:
    async def flow() -> None:
        async with opened(agent) as socket:
            waiting = await socket.call("tasks.create", {"initialMessage": HELLO, "metadata": {"agent": "asks"}})
            assert (waiting["type"], waiting["task"]["status"]) == ("task", "SUBMITTED")
            task_id = waiting["task"]["taskId"]
            await socket.settled(task_id, "INPUT_REQUIRED")
            await socket.notify("tasks.cancel", {"taskId": task_id})
            await socket.settled(task_id, "CANCELED")
            # A connection may have 64 calls in flight.
            calls = [socket.call("tasks.get", {"taskId": f"nothing-{number}"}) for number in range(60)]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert [error.data["taskId"] for error in errors if isinstance(error, RpcError)] == [
                f"nothing-{number}" for number in range(60)
            ]

    asyncio.run(flow())


@pytest.mark.requirement("ACP-18")
def test_no_token_and_no_secret_is_in_the_log(world: World, agent: AcpClient) -> None:
    created(agent)
    text = world.server.log.read_text(encoding="utf-8")
    assert agent.token() not in text
    assert agent.secret not in text
