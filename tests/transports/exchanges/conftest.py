"""The door to which the calls go."""

import asyncio
import json
from typing import Any

import pytest
from django.test import AsyncClient

from tests.conftest import Person
from tests.transports.exchanges.calls import Post


@pytest.fixture
def post(owner: Person) -> Post:
    """POST a value as JSON (or bytes) to the door; the status and the bytes of the answer."""

    def post(wire: Any, key: str | None = owner.key, path: str = "/jsonrpc", **headers: str) -> tuple[int, bytes]:
        async def call() -> tuple[int, bytes]:
            if key:
                headers["authorization"] = f"Bearer {key}"
            body = wire if isinstance(wire, bytes) else json.dumps(wire).encode()
            response = await AsyncClient().post(path, data=body, content_type="application/json", headers=headers)
            if not response.streaming:
                return response.status_code, response.content
            return response.status_code, b"".join([chunk async for chunk in response.streaming_content])

        return asyncio.run(call())

    return post
