"""``python -m tests.faults.starter SOCKET``: a process that has imported the libraries forks the processes of tests.

To start Python and import the libraries takes a second of a core, which fault tests would pay hundreds of times. Only
libraries and the protocol are imported ahead, and nothing that reads the settings: each process loads the service by
itself, runs `manage.py` as a script, has a session of its own, and ends as a process that was started by a shell does.
Of what reads the settings only the code is read ahead, which each process then executes.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

LIBRARIES = (
    "a2a.acting",
    "a2a.cards",
    "a2a.descriptions.openapi",
    "a2a.descriptions.openrpc",
    "a2a.card_choice",
    "a2a.dialects.json.history",
    "a2a.params",
    "a2a.dialects.schemas.cards",
    "a2a.languages",
    "a2a.retry_after",
    "a2a.scribe",
    "a2a.signatures",
    "a2a.sse",
    "celery.app.trace",
    "celery.backends.base",
    "celery.concurrency.prefork",
    "celery.concurrency.solo",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "channels.layers",
    "channels_redis.pubsub",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "dj_database_url",
    "django.contrib.admin.templatetags.admin_list",
    "django.contrib.admin.views.main",
    "django.contrib.auth.password_validation",
    "django.contrib.messages.middleware",
    "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.db",
    "django.contrib.staticfiles.storage",
    "django.core.asgi",
    "django.core.cache.backends.locmem",
    "django.core.management.commands.makemigrations",
    "django.core.management.commands.migrate",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.middleware.clickjacking",
    "django.middleware.common",
    "django.middleware.security",
    "django.template.defaulttags",
    "django.templatetags.i18n",
    "django.views.debug",
    "django.views.defaults",
    "email.mime.text",
    "encodings.idna",
    "httpcore",
    "httpx",
    "jwt",
    "msgspec.json",
    "multiprocessing.forkserver",
    "orjson",
    "psycopg.types.hstore",
    "pygments.formatters.html",
    "pygments.lexers.special",
    "redis.asyncio",
    "requests",
    "segno",
    "standardwebhooks.webhooks",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvicorn.server",
    "uvloop",
    "whitenoise.middleware",
)
PACKAGES = (
    *("a2a", "config", "tasks_app", "rest_framework", "channels", "django_otp"),
    *(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "messages", "sessions", "staticfiles")),
)
"""Packages whose code is read ahead: they read the settings."""
LARGEST = 200_000
"""Bytes of an order."""


def serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork a process for each order. Return its order in the process itself, and None once the tests have ended.

    Kill those that are left then: tests that were killed could not end them.
    """
    children: set[int] = set()
    while True:
        line, descriptors, *_ = socket.recv_fds(channel, LARGEST, 2)
        if not line:
            for child in children:
                os.kill(child, signal.SIGKILL)
            return None
        order = json.loads(line)
        if reaped := order.get("reap"):
            channel.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(reaped, 0)[1]))
            children.discard(reaped)
            continue
        pid = os.fork()
        if not pid:
            channel.close()
            become(order, *descriptors)
            return dict(order)
        for descriptor in descriptors:
            os.close(descriptor)
        children.add(pid)
        channel.send(b"%d" % pid)


def become(order: dict[str, Any], output: int, errors: int) -> None:
    """Take the session, the environment and the files of a process that was started anew."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs in the background ignore it
    os.environ.clear()
    os.environ.update(order["environment"])
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    sys.argv = order["arguments"]


class Ahead(MetaPathFinder):
    """Finds modules whose code was read ahead."""

    def __init__(self) -> None:
        self.codes: dict[str, CodeType] = {}
        self.files: dict[str, Path] = {}

    def read(self, package: str) -> None:
        """Read the code of all modules of a package."""
        spec = find_spec(package)
        for folder in map(Path, spec.submodule_search_locations or () if spec else ()):
            for file in folder.rglob("*.py"):
                parts = file.relative_to(folder).with_suffix("").parts
                name = ".".join([package, *(parts[:-1] if file.stem == "__init__" else parts)])
                if name not in sys.modules and (code := SourceFileLoader(name, str(file)).get_code(name)):
                    self.codes[name], self.files[name] = code, file

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Return where the module is, and a loader that has its code already."""
        file = self.files.get(name)
        if file is None:
            return None
        places = [str(file.parent)] if file.stem == "__init__" else None
        loader = Loader(name, str(file), self.codes[name])
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=places)


class Loader(SourceFileLoader):
    """Loads a module from code that was read ahead."""

    def __init__(self, name: str, file: str, code: CodeType) -> None:
        super().__init__(name, file)
        self.code = code

    def get_code(self, name: str) -> CodeType:
        return self.code


def preload() -> None:
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):  # one that is not installed is not used
            importlib.import_module(name)
    ahead = Ahead()
    for package in PACKAGES:
        ahead.read(package)
    sys.meta_path.insert(0, ahead)
    gc.freeze()


if __name__ == "__main__":
    preload()
    if order := serve(socket.socket(fileno=int(sys.argv[1]))):
        runpy.run_path(sys.argv[0], run_name="__main__")
