"""The files of agents that a person edits: those of A2A_AGENTS_DIR and A2A_AGENT_MODULES, to import and to watch."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

NOT_AGENTS = ("_", "test_", "conftest")
"""Beginnings of the names of modules that are for others: helpers, tests."""


def modules() -> list[str]:
    """Return the names of the modules in A2A_AGENTS_DIR, which can be imported from now on."""
    if not settings.A2A_AGENTS_DIR:
        return []
    folder = _folder()
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise ImproperlyConfigured(f"A2A_AGENTS_DIR: cannot read the folder {folder}: {error.strerror}") from None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a file of this folder hides no module of others
    names = [name for path in paths if (name := _name(path))]
    for name in names:
        _check(name, folder)
    return names


def watch(sender: Any, **_: Any) -> None:
    """Let Django's reloader look at agents whose import failed too, and at new files of the folder."""
    if settings.A2A_AGENTS_DIR:
        sender.watch_dir(_folder(), "**/*.py")
    for module in settings.A2A_AGENT_MODULES:
        for place in sys.path:
            path = Path(place, *module.split(".")).with_suffix(".py")
            if path.exists():
                sender.extra_files.add(path.resolve())


def _folder() -> Path:
    return Path(settings.A2A_AGENTS_DIR).expanduser().absolute()


def _name(path: Path) -> str:
    """Return the name of the module; empty for what is none, or not for agents."""
    is_module = path.suffix == ".py" or (path / "__init__.py").exists()
    return path.stem if is_module and not path.name.startswith(NOT_AGENTS) else ""


def _check(name: str, folder: Path) -> None:
    """Raise ImproperlyConfigured for a file that Python would not import by its name."""
    if not name.isidentifier():
        raise ImproperlyConfigured(f"A2A_AGENTS_DIR: {folder / name}.py cannot be imported; rename it, as my_agents.py")
    spec = find_spec(name)
    origin = Path(spec.origin) if spec and spec.origin else None
    if origin is None or folder.resolve() not in origin.resolve().parents:
        where = f" ({origin})" if origin else ""
        raise ImproperlyConfigured(
            f"A2A_AGENTS_DIR: {folder / name}.py has the name of another module{where}; rename it"
        )
