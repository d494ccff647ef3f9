"""Imports of the modules that define agents. An error in one becomes a sentence with its file and line."""

import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.utils import module_loading

from a2a.agents import registry
from a2a.definitions import AgentDefinitionError

_MACHINERY = ("<frozen importlib", import_module.__code__.co_filename, module_loading.__file__, __file__)
"""Prefixes of the files that are in every traceback of an import."""
ELSEWHERE = ("site-packages", "dist-packages", "<frozen")
"""Parts of file names that do not belong to the author of an agent."""


def import_agents(module: str) -> None:
    """Import a module of A2A_AGENT_MODULES. Raises ImproperlyConfigured and AgentDefinitionError."""
    if module.startswith("."):
        raise _missing(module)  # A path such as ./agents.py, for which import_module would want a package.
    before = registry.names()
    try:
        with explaining_errors():
            import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise failure_of(error) from error  # The module exists, but it imports one that does not.
        raise _missing(module) from None
    if registry.names() == before and not _has_agents(module):
        file = getattr(sys.modules[module], "__file__", None) or "a folder without __init__.py"
        raise ImproperlyConfigured(
            f"A2A_AGENT_MODULES: the module {module} ({file}) defines no agent: import agent from a2a, and write "
            "@agent before a function"
        )


def _has_agents(module: str) -> bool:
    """Return whether a registered agent is defined or imported in the module or in one inside it.

    A module that was imported earlier adds no agent to the registry, but still has its own.
    """
    imported = [value for value in vars(sys.modules[module]).values() if callable(value)]
    return any(
        f"{agent.function.__module__}.".startswith(f"{module}.") or agent.function in imported for agent in registry
    )


def discover(find: Callable[[], object]) -> None:
    """Let Django find and import modules. Raises ImproperlyConfigured and AgentDefinitionError."""
    try:
        with explaining_errors():
            find()
    except ModuleNotFoundError as error:
        raise failure_of(error) from error


@contextmanager
def explaining_errors() -> Iterator[None]:
    """Turn any error of an import into ImproperlyConfigured, except ModuleNotFoundError, which callers handle.

    Also SystemExit, of a script that parses arguments, and other exceptions that would end the thread or the process.
    """
    try:
        yield
    except (AgentDefinitionError, ImproperlyConfigured, ModuleNotFoundError):
        raise
    except SyntaxError as error:
        kind = type(error).__name__  # such as IndentationError
        raise ImproperlyConfigured(f"{error.filename}:{error.lineno}: {kind}: {error.msg}") from error
    except BaseException as error:  # a module may raise anything
        if isinstance(error, KeyboardInterrupt) and _heeds_keyboard():
            raise
        raise failure_of(error) from error


def _heeds_keyboard() -> bool:
    """Return whether Ctrl-C raises KeyboardInterrupt here. Elsewhere only code can raise it."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def failure_of(error: BaseException) -> ImproperlyConfigured:
    """Describe an error that ended an import: the last line of the agent's author, the error, and where it was raised
    if that is another line."""
    calls = [call for call in traceback.extract_tb(error.__traceback__) if not call.filename.startswith(_MACHINERY)]
    words = ""
    with suppress(Exception):  # The class may be the author's, and its __str__ may fail.
        words = str(error)
    sentence = f"{type(error).__name__}: {words}".rstrip(": ")
    if not calls:
        return ImproperlyConfigured(f"an import ended with {sentence}")
    folder, last = Path(calls[0].filename).parent, calls[-1]
    own = [call for call in calls if _is_own(Path(call.filename), folder)][-1:] or calls[:1]
    place = f"{own[0].filename}:{own[0].lineno}"
    raised = f"{last.filename}:{last.lineno}"
    within = "" if raised == place else f" (raised at {raised})"
    remedy = ""
    if isinstance(error, ModuleNotFoundError):
        remedy = "; if it is a package, list it in requirements-agents.txt and run make install"
    return ImproperlyConfigured(f"{place}: the import ended with {sentence}{within}{remedy}")


def _is_own(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) and not any(part.startswith(ELSEWHERE) for part in file.parts)


def _missing(module: str) -> ImproperlyConfigured:
    hint = "; write it without .py" if module.endswith(".py") else ""
    return ImproperlyConfigured(
        f"A2A_AGENT_MODULES: there is no module {module} beside manage.py or in PYTHONPATH{hint}"
    )
