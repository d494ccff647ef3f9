"""The files of A2A_AGENTS_DIR and A2A_AGENT_MODULES: which modules to import, which files to watch for edits, and the
folder that a process reads again while it runs."""

import importlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import cache_from_source, find_spec
from inspect import unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils import autoreload

from a2a.agents import registry
from a2a.definitions import AgentDefinitionError
from tasks_app.discovery import discover

log = logging.getLogger(__name__)
Stamp = frozenset[tuple[str, int, int]]
"""Every Python file of the folder with its time of change and its size. Another stamp means other code."""

OPERATING = frozenset({"a2a", "deliveries", "exchanges", "migrate", "tasks"})
"""Commands by which operators look and act, also while a file of an agent is broken."""
PRUNED = (".", "__pycache__", "site-packages", "dist-packages")
"""Beginnings of the names of folders within the folder that have no code of the author."""
_AGENT = re.compile(rb"^@(a2a\.)?agent\b", re.MULTILINE)
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


def agents_left_out() -> list[Path]:
    """Return the files that define agents in folders that are no packages, unless another module has imported them."""
    if not settings.A2A_AGENTS_DIR:
        return []
    imported = {place for module in list(sys.modules.values()) for place in _places(module)}
    with suppress(OSError):  # find_modules says what cannot be read.
        paths = sorted(_folder().glob("*/*.py"))
        return [path for path in paths if str(path) not in imported and _is_left_out(path)]
    return []


def _is_left_out(path: Path) -> bool:
    names = (path.name, path.parent.name)
    if any(name.startswith((*NOT_AGENTS, *PRUNED)) for name in names) or (path.parent / "__init__.py").exists():
        return False
    return _AGENT.search(path.read_bytes()) is not None


def watch(sender: Any, **_: Any) -> None:
    """Let Django's reloader watch new files of the folder, and agents whose import failed."""
    if settings.A2A_AGENTS_DIR:
        sender.watch_dir(_folder(), "**/*.py")
    for module in settings.A2A_AGENT_MODULES:
        for place in sys.path:
            path = Path(place, *module.split(".")).with_suffix(".py")
            if path.exists():
                sender.extra_files.add(path.resolve())
    if folder.is_broken:
        sender.tick = partial(_look_for_changes, sender.tick)


def _look_for_changes(tick: Callable[[], Iterator[None]]) -> Iterator[None]:
    """Do what the reloader does between two pauses, and have the server start again once the folder has changed.

    Django's reloader sees edits alone. The mistake that has ended the server may also be mended by deleting its file,
    or by adding one that it imports. A server at work reads the folder again, and needs no new start for that.
    """
    for _ in tick():
        if changes := folder.changes():
            autoreload.trigger_reload(changes[0])
        yield


def _folder() -> Path:
    return Path(settings.A2A_AGENTS_DIR)


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


SLOW = 10.0
"""Seconds after which a reading that goes on is a trouble: an import may never end."""


class AgentFolder:
    """The folder A2A_AGENTS_DIR as this process has read it."""

    def __init__(self) -> None:
        self.stamp: Stamp = frozenset()
        """The stamp of the last reading, whether it succeeded or not."""
        self.newest: Stamp = frozenset()
        """The stamp of the last look."""
        self.problem = ""
        """Why the folder could not be read again; empty if it could."""
        self.is_broken = False
        """Whether a mistake in the folder has stopped the start of this process."""
        self.is_tolerant = False
        """True to log a mistake at the start of this process, and to go on without the agents."""
        self.reading: tuple[int, float] | None = None
        """The thread of the reading under way and its start, on the monotonic clock."""
        self.foreign: frozenset[str] | None = None
        """Modules of the folder that others imported before the first reading, which stay as they are."""

    def begin(self, arguments: Sequence[str]) -> None:
        """Read the folder at the start of a process with these arguments.

        A mistake in it stops a server or a worker: raises ImproperlyConfigured and AgentDefinitionError. A command of
        operators logs it, and does its work without agents.
        """
        try:
            self.load()
        except (ImproperlyConfigured, AgentDefinitionError) as error:
            if not (self.is_tolerant or OPERATING.intersection(arguments[1:2])):
                self.is_broken = True
                raise
            log.error("A2A_AGENTS_DIR was not read: %s", error)

    def load(self) -> None:
        """Import all modules, and put their agents in place of the former ones, all at once.

        Raises ImproperlyConfigured and AgentDefinitionError. The former agents and modules are then as they were.
        """
        former, self.stamp = self.stamp, read_stamp()
        _forget_bytecode({path for path, *_ in former ^ self.stamp} if former else set())
        if self.foreign is None:
            self.foreign = frozenset(_own_modules())
        modules = self._take_modules()
        importlib.invalidate_caches()
        try:
            with self._timed(), registry.staging() as agents:
                for module in find_modules():
                    discover(partial(importlib.import_module, module))
            registry.swap({agent.name for agent in registry if unwrap(agent.function).__module__ in modules}, agents)
        except BaseException:
            self._take_modules()
            sys.modules.update(modules)
            raise

    def refresh(self, *, at_once: bool = False) -> bool:
        """Read the folder again if its files have changed; return whether the agents are other ones.

        Never raises. Files that change are read at the first look that finds them as the look before it did, unless
        the caller says at once: they may still be written.
        """
        if not (settings.A2A_AGENTS_DIR and settings.A2A_AGENTS_RELOAD):
            return False
        before, self.newest = self.newest, read_stamp()
        if self.newest == self.stamp or (self.newest != before and not at_once):
            return False
        try:
            self.load()
        except (ImproperlyConfigured, AgentDefinitionError) as error:
            problem = f"agents: A2A_AGENTS_DIR was not read again, the former agents go on: {error}"
            self.problem = problem.replace(f"{_folder()}{os.sep}", "")  # /readyz shows it to strangers.
            if not at_once:  # The parent of a child that runs one agent has logged it.
                log.error("%s", problem)
            return False
        self.problem = ""
        log.info("A2A_AGENTS_DIR was read again; the agents are %s", ", ".join(registry.names()))
        return True

    def changes(self) -> list[str]:
        """Return the paths of the files that are not as the last reading found them: edited, new or gone."""
        return sorted({path for path, *_ in self.stamp ^ read_stamp()})

    def _take_modules(self) -> dict[str, ModuleType]:
        """Remove the modules that came from the folder from those that Python has imported, and return them.

        Functions at work keep the module that they were defined in.
        """
        return {name: sys.modules.pop(name) for name in _own_modules() if name not in (self.foreign or ())}

    def troubles(self) -> list[str]:
        """Return why the folder could not be read again, or which line holds up the reading."""
        reading = self.reading
        is_slow = reading is not None and time.monotonic() - reading[1] >= SLOW
        return [sentence for sentence in (self.problem, self._slowness() if is_slow else "") if sentence]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Log a reading that takes long, which may be at its start or within a process at work."""
        self.reading = threading.get_ident(), time.monotonic()
        timer = threading.Timer(SLOW, lambda: log.warning("%s", self._slowness()))
        timer.daemon = True
        try:
            with suppress(RuntimeError):  # The process has no room for a thread. troubles() still names the line.
                timer.start()
            yield
        finally:
            timer.cancel()
            self.reading = None

    def _slowness(self) -> str:
        """Return a sentence about the line of the folder at which the reading is; empty if it has ended."""
        if (reading := self.reading) is None:
            return ""
        frame, place = sys._current_frames().get(reading[0]), "an import"
        while frame is not None:
            if _is_own(frame.f_code.co_filename):
                place = f"{Path(frame.f_code.co_filename).relative_to(_folder())}:{frame.f_lineno}"
                break
            frame = frame.f_back
        seconds = time.monotonic() - reading[1]
        return (
            f"agents: the reading of A2A_AGENTS_DIR has taken {seconds:.0f} s, and is at {place}: if that import never "
            "ends, mend it, and restart the process"
        )


def read_stamp() -> Stamp:
    """Return the stamp of the folder; an empty one for a folder that cannot be read."""
    files = set()
    for folder, folders, names in os.walk(_folder(), followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(PRUNED)]
        for path in (Path(folder, name) for name in names if name.endswith(".py")):
            with suppress(OSError):  # It was removed just now.
                status = path.stat()
                files.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(files)


def _own_modules() -> list[str]:
    """Return the names of the imported modules whose files are in the folder."""
    return [name for name, module in list(sys.modules.items()) if any(map(_is_own, _places(module)))]


def _places(module: ModuleType) -> list[str]:
    return [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", ()))]


def _is_own(place: str) -> bool:
    """Return whether a file is one of the folder, and not of packages that are installed inside it."""
    if not place or not Path(place).is_relative_to(_folder()):
        return False
    return not any(part.startswith(PRUNED) for part in Path(place).relative_to(_folder()).parts)


def _forget_bytecode(paths: set[str]) -> None:
    """Delete the bytecode of files that have changed.

    Python takes it for that of the new code if the file has the same size and was changed within the same second.
    """
    for path in paths:
        with suppress(OSError):
            Path(cache_from_source(path)).unlink(missing_ok=True)


folder = AgentFolder()
"""The folder of this process."""
