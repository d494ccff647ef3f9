"""Sends one message with the official Python SDK 1.3.0, waits for what comes of it with the SDK's own patience, and
prints the last that came.

Runs in the SDK's own environment: `python -I patience.py URL KEY JSONRPC|HTTP+JSON send|stream SECONDS`.
"""

# ruff: noqa: I001  # here a2a is the SDK, a third party

import asyncio
import json
import sys
import time
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.types import Message, Part, Role, SendMessageRequest
from google.protobuf.json_format import MessageToDict, ParseDict

URL, KEY, BINDING, HOW, SECONDS = sys.argv[1:6]


async def main():
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
    store = InMemoryContextCredentialStore()
    await store.set_credentials("session", "bearer", KEY)
    # Without an HTTP client of the caller's the SDK makes one, as it is by default.
    config = ClientConfig(streaming=HOW == "stream", supported_protocol_bindings=[BINDING])
    client = ClientFactory(config).create(card, interceptors=[AuthInterceptor(store)])
    part = ParseDict({"data": {"seconds": float(SECONDS)}}, Part())
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[part])
    context = ClientCallContext(state={"sessionId": "session"})
    began = time.monotonic()
    *_, last = [event async for event in client.send_message(SendMessageRequest(message=message), context=context)]
    json.dump({"took": time.monotonic() - began, "last": MessageToDict(last)}, sys.stdout)


asyncio.run(main())
