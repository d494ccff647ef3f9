"""The files of A2A_AGENTS_DIR and A2A_AGENT_MODULES: which modules to import, and which files to watch for edits."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

NOT_AGENTS = ("_", "test_", "conftest")
"""Prefixes of modules that define no agents: helpers and tests."""


def find_modules() -> list[str]:
    """Return the names of the modules in A2A_AGENTS_DIR, and make them importable."""
    if not settings.A2A_AGENTS_DIR:
        return []
    folder = _folder()
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise ImproperlyConfigured(f"A2A_AGENTS_DIR: cannot read the folder {folder}: {error.strerror}") from None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # Last, so that no file of this folder hides another module.
    names = [name for path in paths if (name := _name(path))]
    for name in names:
        _check(name, folder)
    return names


def watch(sender: Any, **_: Any) -> None:
    """Let Django's reloader watch new files of the folder, and agents whose import failed."""
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
    """Return the name of the module at a path; empty if it is no module, or not one for agents."""
    is_module = path.suffix == ".py" or (path / "__init__.py").exists()
    return path.stem if is_module and not path.name.startswith(NOT_AGENTS) else ""


def _check(name: str, folder: Path) -> None:
    """Check that Python imports this file by its name. Raises ImproperlyConfigured."""
    if not name.isidentifier():
        raise ImproperlyConfigured(f"A2A_AGENTS_DIR: {folder / name}.py cannot be imported; rename it, as my_agents.py")
    spec = find_spec(name)
    origin = Path(spec.origin) if spec and spec.origin else None
    if origin is None or folder.resolve() not in origin.resolve().parents:
        where = f" ({origin})" if origin else ""
        raise ImproperlyConfigured(
            f"A2A_AGENTS_DIR: {folder / name}.py has the name of another module{where}; rename it"
        )
