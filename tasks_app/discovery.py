"""Importing the modules that define agents. What is wrong with one is a sentence with its file and line."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.utils import module_loading

from a2a.agents import AgentDefinitionError, registry

_MACHINERY = ("<frozen importlib", import_module.__code__.co_filename, module_loading.__file__, __file__)
"""Files, or how their names begin, that stand in every traceback of an import."""
ELSEWHERE = ("site-packages", "dist-packages", "<frozen")
"""Parts of file names that are no author's."""


def import_agents(module: str) -> None:
    """Import a module that A2A_AGENT_MODULES names. Raises ImproperlyConfigured and AgentDefinitionError."""
    if module.startswith("."):
        raise _missing(module)  # a path; import_module would ask for a package
    before = registry.names()
    try:
        with told_in_a_sentence():
            import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise failed(error) from error  # The module is there; what it imports is not.
        raise _missing(module) from None
    if registry.names() == before and not _has_agents(module):
        file = getattr(sys.modules[module], "__file__", None) or "a folder without __init__.py"
        raise ImproperlyConfigured(
            f"A2A_AGENT_MODULES: the module {module} ({file}) defines no agent: write @agent, which is imported from "
            "a2a, before a function"
        )


def _has_agents(module: str) -> bool:
    """Whether registered agents are defined in the module or one inside it, or imported there: that may have happened
    before."""
    imported = [value for value in vars(sys.modules[module]).values() if callable(value)]
    return any(
        f"{agent.function.__module__}.".startswith(f"{module}.") or agent.function in imported for agent in registry
    )


def discover(find: Callable[[], object]) -> None:
    """Let Django find and import modules. Raises as above."""
    try:
        with told_in_a_sentence():
            find()
    except ModuleNotFoundError as error:
        raise failed(error) from error


@contextmanager
def told_in_a_sentence() -> Iterator[None]:
    """Turn whatever an import raises into ImproperlyConfigured, but for a module that is not there: some are sought."""
    try:
        yield
    except (AgentDefinitionError, ImproperlyConfigured, ModuleNotFoundError):
        raise
    except SyntaxError as error:
        raise ImproperlyConfigured(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:  # a module may raise anything
        raise failed(error) from error


def failed(error: Exception) -> ImproperlyConfigured:
    """The sentence for an error that ended an import: the author's line, the error, and where else it was raised."""
    calls = [call for call in traceback.extract_tb(error.__traceback__) if not call.filename.startswith(_MACHINERY)]
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    if not calls:
        return ImproperlyConfigured(f"an import ended with {said}")
    folder, last = Path(calls[0].filename).parent, calls[-1]
    own = [call for call in calls if _is_own(Path(call.filename), folder)][-1:] or calls[:1]
    place = f"{own[0].filename}:{own[0].lineno}"
    raised = f"{last.filename}:{last.lineno}"
    within = "" if raised == place else f" (raised at {raised})"
    return ImproperlyConfigured(f"{place}: the import ended with {said}{within}")


def _is_own(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) and not any(part.startswith(ELSEWHERE) for part in file.parts)


def _missing(module: str) -> ImproperlyConfigured:
    hint = "; write it without .py" if module.endswith(".py") else ""
    return ImproperlyConfigured(
        f"A2A_AGENT_MODULES: there is no module {module}; looked for beside manage.py and in PYTHONPATH{hint}"
    )
