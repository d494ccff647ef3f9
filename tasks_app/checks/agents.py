"""Checks of agents, of what calls them, and of what agents call."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it

from a2a import languages
from a2a.agents import registry
from a2a.language import Language
from a2a.requests import Request
from tasks_app.agent_files import agents_left_out
from tasks_app.callers.scopes import Right
from tasks_app.slack.extra import INSTALL, find_problem


@register()
def check_operations(**_: Any) -> list[CheckMessage]:
    """Check that each method of each language leads to an operation that declares the right of its callers.

    a2a.E040: a method has no operation in `OPERATIONS`, or the operation declares no right.
    """
    from tasks_app.operations import OPERATIONS  # loads all operations

    every = {request: name for language in languages.ALL.by_name.values() for name, request in _requests(language)}
    return [
        Error(
            f"The method {name} has no operation that declares a right, so no caller could be refused.",
            hint=f"Add {request.__name__} to OPERATIONS in tasks_app/operations/dispatcher.py, with its right.",
            id="a2a.E040",
        )
        for request, name in every.items()
        if request not in OPERATIONS or not isinstance(OPERATIONS[request].right, Right)
    ]


@register()
def check_costs(**_: Any) -> list[CheckMessage]:
    """Check the names of operations whose costs are set.

    a2a.E041: `A2A_OPERATION_COSTS` names an operation that does not exist.
    """
    if not (costs := settings.A2A_OPERATION_COSTS):
        return []
    from tasks_app.operations import OPERATIONS  # loads all operations

    names = [request.__name__ for request in OPERATIONS]
    return [
        Error(
            f"A2A_OPERATION_COSTS has the cost of {name}, which is no operation.",
            hint=f"The operations are {', '.join(sorted(names))}.",
            id="a2a.E041",
        )
        for name in costs
        if name not in names
    ]


@register()
def check_default_agent(**_: Any) -> list[CheckMessage]:
    """Check that the default agent exists.

    a2a.E002: there is no agent `A2A_DEFAULT_AGENT`.
    """
    if registry.get(settings.A2A_DEFAULT_AGENT):
        return []
    names = ", ".join(registry.names())
    hint = f"Set A2A_DEFAULT_AGENT to one of {names}, or add the agent by A2A_AGENTS_DIR or A2A_AGENT_MODULES."
    return [Error(f"There is no agent {settings.A2A_DEFAULT_AGENT}.", hint=hint, id="a2a.E002")]


@register()
def check_agents_left_out(**_: Any) -> list[CheckMessage]:
    """Check that all agents in folders of `A2A_AGENTS_DIR` are imported.

    a2a.W009: a folder in `A2A_AGENTS_DIR` has agents and no `__init__.py`, so they are not imported.
    """
    return [
        Warning(
            f"The agents of {path} are not imported, because its folder has no __init__.py.",
            hint=f"Add {path.parent / '__init__.py'}, which imports the module: from . import {path.stem}",
            id="a2a.W009",
        )
        for path in agents_left_out()
    ]


@register()
def check_llm(**_: Any) -> list[CheckMessage]:
    """Check the settings of the agent `llm`.

    a2a.E003: only one of `LLM_BASE_URL` and `LLM_MODEL` is set, or an address or a key cannot be one.
    """
    from tasks_app.agents import llm  # imported late: every command imports this module, but few run its checks

    sentence = llm.find_problem()
    return [Error(sentence, hint="Without address and model there is no llm agent.", id="a2a.E003")] if sentence else []


@register()
def check_relays(**_: Any) -> list[CheckMessage]:
    """Check the addresses of relays.

    a2a.E013: an address of `A2A_RELAYS` may not be called.
    """
    if not settings.A2A_RELAYS:
        return []
    from tasks_app.outbound.policy import Blocked, target  # loads httpx

    messages: list[CheckMessage] = []
    for name, relay in settings.A2A_RELAYS.items():
        try:
            target(relay["url"])
        except Blocked as error:
            hint = (
                "A2A_OUTBOUND_HOSTS lists hosts that are not public; `manage.py a2a relays login` stores credentials."
            )
            messages.append(Error(f"A2A_RELAYS: the address of {name} {error}.", hint=hint, id="a2a.E013"))
    return messages


@register()
def check_slack(**_: Any) -> list[CheckMessage]:
    """Check the Slack front.

    a2a.W007: `A2A_SLACK` without the extra `slack`, so that `/slack/events` is not found.
    """
    problem = find_problem() if settings.A2A_SLACK else ""
    return [Warning(problem, hint=f"{INSTALL}, or set A2A_SLACK=false.", id="a2a.W007")] if problem else []


def _requests(language: Language) -> Iterator[tuple[str, type[Request]]]:
    return ((name, method.request) for name, method in language.methods.items())
