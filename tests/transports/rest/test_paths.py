"""Paths of REST beside our own."""

from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tasks_app.callers.paths import LEAN, RESERVED, STOCK, is_lean

pytestmark = pytest.mark.storage


def first_segments(patterns: list[Any]) -> set[str]:
    """Return the first segments of our paths, as far as they are fixed."""
    found = set()
    for entry in patterns:
        assert isinstance(entry, URLPattern | URLResolver)
        text = str(entry.pattern)
        if not text.startswith("^"):  # the regular expressions are those of REST
            found.add(text.split("/")[0])
    return found


def test_no_path_of_ours_can_be_a_tenant() -> None:
    assert first_segments(get_resolver().url_patterns) <= RESERVED
    assert {"v1", "tasks", "message:send", "message:stream", "extendedAgentCard", ".well-known", "jsonrpc"} <= RESERVED
    assert not LEAN & STOCK


@pytest.mark.parametrize(
    ("path", "lean"),
    [
        ("/", True),
        ("/jsonrpc", True),
        ("/tasks/t", True),
        ("/v1/tasks", True),
        ("/message:send", True),
        ("/acme/tasks", True),
        ("/acme/message:stream", True),
        ("/acme/extendedAgentCard", True),
        ("/healthz", True),
        ("/agents/echo/acme/tasks", True),
        ("*", True),
        ("", True),
        ("/admin/", False),
        ("/admin/tasks", False),
        ("/static/tasks/x", False),
        ("/acme", False),
        ("/acme/other", False),
        ("/favicon.ico", False),
    ],
)
def test_the_lean_handler_has_the_protocols_paths(path: str, lean: bool) -> None:
    assert is_lean(path) is lean
