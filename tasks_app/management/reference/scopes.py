"""The page of scopes, generated from their table, from the operations and from the paths of HTTP."""

from collections.abc import Mapping

from a2a.descriptions.openapi import Place
from a2a.dialects import discovery
from a2a.languages import DIALECTS
from a2a.requests import Request
from tasks_app.callers.scopes import ACP, OWN, Right
from tasks_app.descriptions.places import PLACES
from tasks_app.management.reference.markdown import code, page, table
from tasks_app.operations import OPERATIONS

INTRODUCTION = """
An operation needs a right, and each right has two scopes: one of this server and one of ACP. A credential may have
either, in every language; `*` grants all. An error `MISSING_SCOPE` names the scope that is `required` and those that
are `provided`. More: [identity](../identity.md#scopes).
"""
NOTHING, LINK, CREDENTIAL = "nothing", "the signature in its URL", "any credential"
SOCKET = ("`GET /ws`, upgraded to a socket", CREDENTIAL)
"""The path that is no place of HTTP. Each call on a socket needs the scope of its method."""


def make() -> str:
    """Return the page."""
    return page(
        "Scopes",
        INTRODUCTION,
        "## Scopes of this server",
        _scopes(OWN),
        "## Scopes of ACP",
        _scopes(ACP),
        "## Methods",
        table(("Operation", "Methods", "Scope", "Scope of ACP"), map(_operation, OPERATIONS)),
        "## Other paths",
        "The signature in a link stands for the caller who made it. Paths of REST need the scopes of their methods.",
        table(("Path", "Needs"), [*((code(f"{place.verb} {place.path}"), _need(place)) for place in PLACES), SOCKET]),
    )


def _scopes(texts: Mapping[str, str]) -> str:
    return table(("Scope", "Allows"), [(code(name), text) for name, text in texts.items()])


def _operation(request: type[Request]) -> tuple[str, ...]:
    languages = (*DIALECTS, discovery.LANGUAGE)
    names = [name for each in languages for name, method in each.methods.items() if method.request is request]
    right: Right = OPERATIONS[request].right
    return request.__name__, ", ".join(map(code, dict.fromkeys(names))), code(right.scope), code(right.acp)


def _need(place: Place) -> str:
    if place.scope is None:
        return LINK if "signature" in place.query else NOTHING
    return code(place.scope) or CREDENTIAL
