"""The official clients, unchanged: what they make of our answers, in every version that they speak."""

import pytest

from a2a.signatures import BadSignature, verify
from tests.clients.conftest import SETTINGS, Saw
from tests.clients.environments import CLIENTS, Client
from tests.support.agents import PIECES

pytestmark = pytest.mark.clients

SPEAKS = {
    "python-1.3.0": "JsonRpcTransport",
    "python-1.3.0-as-0.3": "CompatJsonRpcTransport",
    "python-0.3.26": "0.3.0",
    "javascript-1.3.0": "1.0",
    "javascript-1.3.0-as-0.3": "0.3",
    "python-1.3.0-rest": "RestTransport",
    "python-1.3.0-rest-as-0.3": "CompatRestTransport",
    "python-0.3.26-rest": "0.3.0",
    "javascript-1.3.0-rest": "1.0",
    "javascript-1.3.0-rest-as-0.3": "0.3",
}
"""The protocol version that each client chooses from the card."""
FILE = {"name": "output.txt", "type": "text/plain"}
TWICE = {"python-1.3.0-rest-as-0.3", "python-0.3.26-rest"}
"""They take the bytes of a file, which over REST are base64 as in every protobuf, for base64 of base64."""
FORGETS = "javascript-1.3.0-rest-as-0.3"
"""It reads over the names of files, and over whether a chunk is appended."""
NO_INTERCEPTORS = "python-0.3.26-rest"
"""Its transport for REST calls none, so it presents no key by itself."""
ERRORS = {
    "python": {
        "unknown task": "TaskNotFoundError: ",
        "not cancelable": "TaskNotCancelableError: ",
        "ended": "UnsupportedOperationError: ",
        "unknown stream": "TaskNotFoundError: ",
        "no such key": "A2AClientError: HTTP Error",
        "wrong field": "InvalidParamsError: Invalid parameters: message.",
    },
    "python-0.3.26": {
        "unknown task": "A2AClientJSONRPCError: JSON-RPC Error code=-32001 ",
        "not cancelable": "A2AClientJSONRPCError: JSON-RPC Error code=-32002 ",
        "ended": "A2AClientJSONRPCError: JSON-RPC Error code=-32004 ",
        "unknown stream": "A2AClientJSONRPCError: JSON-RPC Error code=-32001 ",
        "no such key": "A2AClientHTTPError: HTTP Error 401",
        "wrong field": "A2AClientJSONRPCError: JSON-RPC Error code=-32602 ",
    },
    "javascript": {
        "unknown task": "JsonRpcTaskNotFoundError -32001: ",
        "not cancelable": "JsonRpcTaskNotCancelableError -32002: ",
        "ended": "JsonRpcUnsupportedOperationError -32004: ",
        "unknown stream": "JsonRpcTaskNotFoundError -32001: ",
        "no such key": "JsonRpcTransportError -38009: ",
        "wrong field": "JsonRpcRequestMalformedError -32602: Invalid parameters: message.",
    },
    # Over REST the SDK reads the status alone.
    "python-0.3.26-rest": {
        "unknown task": "A2AClientHTTPError: HTTP Error 404",
        "not cancelable": "A2AClientHTTPError: HTTP Error 400",
        "ended": "A2AClientHTTPError: HTTP Error 400",
        "unknown stream": "A2AClientHTTPError: HTTP Error 400: Invalid SSE response",
        "no such key": "A2AClientHTTPError: HTTP Error 401",
        "wrong field": "A2AClientHTTPError: HTTP Error 400",
    },
    "javascript-1.3.0-rest": {
        "unknown task": "RestTaskNotFoundError : ",
        "not cancelable": "RestTaskNotCancelableError : ",
        "ended": "RestUnsupportedOperationError : ",
        "unknown stream": "RestTaskNotFoundError : ",
        "no such key": "RestA2AErrorImpl : Authentication is required",
        "wrong field": "RestRequestMalformedError : Invalid parameters: message.",
    },
    "javascript-1.3.0-rest-as-0.3": {
        "unknown task": "TaskNotFoundError : ",
        "not cancelable": "TaskNotCancelableError : ",
        "ended": "UnsupportedOperationError : ",
        "unknown stream": "TaskNotFoundError : ",
        "no such key": "Error : REST error: Authentication is required",
        "wrong field": "RequestMalformedError : Invalid parameters: message.",
    },
}
"""How an error begins that the client raises."""


def expected_error(client: Client, name: str) -> str:
    return (ERRORS.get(client.name) or ERRORS[client.name.partition("-")[0]])[name]


def test_the_card_tells_the_client_what_to_speak(client: Client, saw: Saw) -> None:
    assert saw("card") == {
        "name": "conformance",
        "speaks": SPEAKS[client.name],
        "streaming": True,
        "push": True,
        "skills": ["conformance"],
    }


def test_a_client_that_is_known_is_shown_more(saw: Saw) -> None:
    of_tests = ["keeps-token", "reports", "reports-late", "sparc-adviser", "sparc-researcher", "specify", "whisper"]
    assert saw("extended") == {"offered": True, "more": ["backstage", "builder", "coder", *of_tests]}


# The verifier of Python 0.3.26 leaves out members that have their default, such as the version. No other does.
signing = pytest.mark.parametrize(
    "client", [known for known in CLIENTS if known.sdk != "python-0.3.26"], indirect=True, ids=lambda known: known.name
)


@signing
def test_the_sdk_believes_our_signatures_on_every_card_and_no_altered_card(saw: Saw) -> None:
    seen = saw("signed")
    assert seen["said"] == SETTINGS["A2A_PROVIDER"]
    assert seen["altered"] in {"InvalidSignaturesError", "No valid signatures found on agent card."}
    assert seen["default"] == "believed"


@signing
@pytest.mark.parametrize("shape", ["bare", "served"])
def test_we_believe_the_signatures_of_the_sdk_and_no_altered_card(saw: Saw, shape: str) -> None:
    card, keys = saw("signed")[shape], saw("signed")["keys"]
    assert verify(card, keys)["name"] == "Prüfer"
    with pytest.raises(BadSignature):
        verify(card | {"name": "Pruefer"}, keys)


def test_the_sdk_presents_the_key_as_the_card_says(client: Client, saw: Saw) -> None:
    expected = expected_error(client, "no such key" if client.name == NO_INTERCEPTORS else "unknown task")
    assert saw("credentials").startswith(expected), saw("credentials")


def test_a_send_waits_and_brings_text_files_links_and_data(client: Client, saw: Saw) -> None:
    about = FILE | ({"name": ""} if client.name == FORGETS else {})
    whole = ["completed", {"bytes": "tck", **about}]
    assert saw("send") == {
        "artifact-text": ["completed", "Generated text content"],
        "artifact-file": "cannot be read: Incorrect padding" if client.name in TWICE else whole,
        "artifact-file-url": ["completed", {"url": "https://example.com/output.txt", **about}],
        "artifact-data": ["completed", {"key": "value", "count": 42}],
    }


def test_a_send_may_be_answered_with_a_bare_message(saw: Saw) -> None:
    assert saw("message")["replies"] == ["message", ["You said Hello"]]


def test_one_agent_may_answer_with_a_message_or_with_a_task(saw: Saw) -> None:
    assert saw("message")["conformance"] == ["message", ["Direct message response"]]


def test_an_immediate_send_brings_the_task_as_it_is(saw: Saw) -> None:
    assert saw("immediate") in {"submitted", "working"}


def test_a_refusal_is_a_rejected_task(saw: Saw) -> None:
    assert saw("reject") == "rejected"


def test_a_stream_brings_the_task_then_its_events_in_order(client: Client, saw: Saw) -> None:
    first, *between, last = saw("stream")
    assert first == ["task", "submitted"]
    assert [event for event in between if event[0] == "artifact"] == [
        ["artifact", ["chunk-1 "], False, False],
        ["artifact", ["chunk-2"], client.name != FORGETS, True],
    ]
    assert {tuple(event) for event in between if event[0] == "status"} == {("status", "working")}
    assert last == ["status", "completed"]


def test_a_streamed_text_is_whole_as_the_helpers_of_the_sdk_give_it(saw: Saw) -> None:
    told, text = saw("told"), "".join(PIECES)
    assert told == {"chunks": text, "apart": len(PIECES), "task": text, "list": text}


def test_a_task_that_asks_goes_on_and_its_history_is_cut_to_length(saw: Saw) -> None:
    history = ["one", "What else?", "two"]
    assert saw("turns") == {
        "states": ["input-required", "completed"],
        "one": True,
        "get": [history, history[-2:], history[-1:], []],
    }


def test_the_tasks_of_a_context_come_in_pages(saw: Saw) -> None:
    pages = saw("listing")
    if pages != "not in this version":
        assert pages == {"pages": [2, 1], "total": 3, "last": "", "newest first": True}


def test_only_clients_of_0_x_cannot_list(client: Client, saw: Saw) -> None:
    assert (saw("listing") == "not in this version") == (client.version != "1.0")


def test_a_running_task_is_canceled(saw: Saw) -> None:
    assert saw("cancel") == ["canceled", True]


def test_a_second_client_joins_in_the_middle_and_both_hear_the_same(saw: Saw) -> None:
    assert saw("subscribe") == {
        "heard": ["task", "submitted", "status", "completed"],
        "joined": ["task", "working"],
        "joined late": True,
        "same": True,
        "last": ["status", "completed"],
    }


def test_a_webhook_is_registered_read_listed_and_removed(client: Client, saw: Saw) -> None:
    url = "http://127.0.0.1:65001/hook?a=b"
    rest = {"listed": ["mine"], "left": 0}
    if client.name.startswith("python-0.3.26") or client.name == "python-1.3.0-rest-as-0.3":
        rest = dict.fromkeys(rest, "not in this client")
    # Token and credentials are not read back.
    assert saw("webhooks") == {
        "made": [True, "mine", url, "tok"],
        "got": ["mine", url, "", "Bearer", ""],
        **rest,
    }


@pytest.mark.parametrize("name", ERRORS["python"])
def test_errors_are_raised_as_what_they_are(client: Client, saw: Saw, name: str) -> None:
    assert saw("errors")[name].startswith(expected_error(client, name)), saw("errors")[name]


@pytest.mark.parametrize(
    "client", [client for client in CLIENTS if client.name == "python-0.3.26"], ids=str, indirect=True
)
def test_a_client_that_reads_only_events_is_told_why_its_stream_was_refused(client: Client, saw: Saw) -> None:
    said = saw("errors")["ended stream"]
    assert said.startswith("A2AClientJSONRPCError: JSON-RPC Error code=-32004 "), said
