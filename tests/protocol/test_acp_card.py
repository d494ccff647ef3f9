"""The card of ACP, and the faults that a card or a request of ACP may have."""

from typing import Any

import pytest

from a2a.dialects.acp import schema
from a2a.dialects.acp.card import encode_card
from a2a.types import Card, Interface, OAuthFlow, Provider, SecurityScheme, Skill

pytestmark = pytest.mark.requirement("ACP-26")

URL = "https://agent.example/jsonrpc"
CARD = Card(
    name="Invoices",
    description="Reads invoices.",
    version="2.4",
    interfaces=(
        Interface(url="https://agent.example/rest", binding="HTTP+JSON", version="1.0"),
        Interface(url=URL, binding="JSONRPC", version="1.0"),
    ),
    skills=(
        Skill(
            id="invoices.Read_it",
            name="Read",
            description="Reads one.",
            tags=("money", "text"),
            input_modes=("image/png", "application/pdf"),
        ),
    ),
    output_modes=("text/plain", "application/json"),
    push_notifications=True,
    provider=Provider(organization="Example", url="https://example.com"),
    security_schemes={
        "oauth": SecurityScheme(flow=OAuthFlow(token_url="https://agent.example/token")),
        "code": SecurityScheme(flow=OAuthFlow(token_url="https://agent.example/token", authorization_url=URL)),
        "bearer": SecurityScheme(http_scheme="Bearer"),
        "key": SecurityScheme(header="X-API-Key"),
        "mtls": SecurityScheme(mutual_tls=True),
    },
    scopes=("invoices:read",),
)
WIRE: dict[str, Any] = {
    "name": "Invoices",
    "description": "Reads invoices.",
    "version": "2.4.0",
    "url": URL,
    "provider": {"organization": "Example", "website": "https://example.com"},
    "capabilities": {"streaming": True, "pushNotifications": True, "fileUpload": True, "multimodal": True},
    "authentication": {
        "schemes": ["oauth2", "bearer", "apikey"],
        "scopes": [
            *("acp:agent:identify", "acp:tasks:read", "acp:tasks:write", "acp:tasks:cancel"),
            *("acp:streams:read", "acp:streams:write", "acp:notifications:receive"),
        ],
    },
    "skills": [
        {
            "id": "invoices-read-it",
            "name": "Read",
            "description": "Reads one.",
            "inputModes": ["image", "file"],
            "outputModes": ["text", "data"],
        }
    ],
    "metadata": {"tags": ["money", "text"]},
}


def test_a_card_has_the_members_and_the_words_of_acp() -> None:
    assert encode_card(CARD) == WIRE
    assert schema.card_faults(WIRE) == []


@pytest.mark.parametrize(
    ("change", "place", "text"),
    [
        ({"name": ""}, "name", "must not be empty"),
        ({"name": "n" * 101}, "name", "must have 100 characters at most, not 101"),
        ({"version": "1.0"}, "version", r"must match ^[0-9]+\.[0-9]+\.[0-9]+$"),
        ({"url": "http://agent.example/jsonrpc"}, "url", "must match ^https://"),
        ({"provider": {}}, "provider.organization", "is required"),
        ({"provider": None}, "provider", "must be an object, not null"),
        ({"capabilities": {"streaming": 1}}, "capabilities.streaming", "must be a boolean, not an integer"),
        ({"skills": []}, "skills", "must have 1 items at least"),
        ({"metadata": {"popularity": 6}}, "metadata.popularity", "must be from 0 to 5"),
        ({"extra": 1}, "extra", "is not a member of this object"),
        (
            {"skills": [WIRE["skills"][0], WIRE["skills"][0] | {"inputModes": ["text", "smell"]}]},
            "skills[1].inputModes[1]",
            "must be one of audio, data, file, image, text",
        ),
    ],
    ids=str,
)
def test_a_fault_of_a_card_is_named_with_its_place(change: dict[str, Any], place: str, text: str) -> None:
    assert schema.card_faults(WIRE | change) == [(place, text)]


def test_all_faults_of_a_request_are_named() -> None:
    request = {
        "jsonrpc": "1.0",
        "method": "tasks.create",
        "id": 1.5,
        "params": {"initialMessage": {"role": "robot", "parts": [{"type": "TextPart"}, {"type": "nope"}]}},
        "extra": True,
    }
    places = {place for place, _ in schema.request_faults(request)}
    parts = {"params.initialMessage.role", "params.initialMessage.parts[1].type"}
    assert places == {"jsonrpc", "id", "extra"} | parts


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ([], ""),
        ({"jsonrpc": "2.0"}, "method"),
        ({"jsonrpc": "2.0", "method": "tasks.paint"}, "method"),
        ({"jsonrpc": "2.0", "method": "tasks.get"}, "params.taskId"),
        ({"jsonrpc": "2.0", "method": "tasks.get", "params": ["t"]}, "params"),
        ({"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": 5}}, "params.taskId"),
    ],
    ids=str,
)
def test_a_wrong_request_has_one_fault(request_: Any, place: str) -> None:
    assert [fault.place for fault in schema.request_faults(request_)] == [place]


@pytest.mark.parametrize("rpc_id", [{"id": "a"}, {"id": 1}, {"id": None}, {}], ids=str)
def test_a_good_request_has_no_fault(rpc_id: dict[str, Any]) -> None:
    request = {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": "t", "includeMessages": False}}
    assert schema.request_faults(request | rpc_id) == []


def test_a_fault_that_no_schema_can_say_is_that_of_the_method() -> None:
    message = {"role": "user", "parts": [{"type": "TextPart", "content": 5}]}
    request = {"jsonrpc": "2.0", "method": "tasks.create", "params": {"initialMessage": message}}
    assert [place for place, _ in schema.request_faults(request)] == ["params.initialMessage.parts[0].content"]
