"""The page of methods, generated from the requests, the dialects that decode them and the operations."""

from a2a.dialects import discovery
from a2a.language import Dialect
from a2a.languages import ALL, DIALECTS
from a2a.requests import Request
from tasks_app.management.reference.markdown import code, page, sentence, table
from tasks_app.operations import OPERATIONS

INTRODUCTION = """
Each operation has a name in every version, over JSON-RPC at `POST /jsonrpc` and over REST. An API key needs the scope
of the operation. A capability can be switched off by its setting. Paths of all doors:
[clients](../clients.md#addresses).
"""


def make() -> str:
    """Return the page."""
    return page("Methods", INTRODUCTION, *(_section(request) for request in OPERATIONS))


def _section(request: type[Request]) -> str:
    operation = OPERATIONS[request]
    capability = f" Capability: `{operation.capability.setting}`." if operation.capability else ""
    rows = [
        (dialect.version, code(name), ", ".join(_routes(dialect.version, name)))
        for dialect in DIALECTS
        for name, method in dialect.methods.items()
        if method.request is request
    ] or [("all", code(name), "") for name, method in discovery.LANGUAGE.methods.items() if method.request is request]
    text = (
        f"{sentence(request.__doc__)}\n\nScope: `{operation.right.scope}`, in ACP `{operation.right.acp}`.{capability}"
    )
    return f"## {request.__name__}\n\n{text}\n\n{table(('Version', 'Method', 'REST'), rows)}"


def _routes(version: str, method: str) -> list[str]:
    """Return the verbs and paths of a method over REST, from the endpoints of its version."""
    return [
        code(f"{route.verb} {f'/{path}' if path else ''}{route.path}")
        for endpoint in ALL.endpoints.values()
        if any(isinstance(language, Dialect) and language.version == version for language in endpoint.languages)
        for path in endpoint.paths
        for route in endpoint.routes
        if route.method == method
    ]
