"""The doctor for databases of fault tests: a process that has loaded everything forks one for each examination.

To start Python and Django anew costs seconds of a core, which every fault test would pay.
"""

import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dj_database_url

PATIENCE = 60.0
"""Seconds that an examination may take."""
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


def findings(database_url: str, secret_keys: Sequence[str] = (), folders: Sequence[str] = ()) -> list[str]:
    """Return what the doctor finds in the database, all logs folded; nothing where it has no tables of ours.

    `secret_keys` are those of the processes that used it, and `folders` those of their files.
    """
    ours, theirs = _context.Pipe(duplex=False)
    process = _context.Process(target=_examine, args=(database_url, secret_keys, folders, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert ours.poll(PATIENCE), f"the doctor did not end within {PATIENCE:g} s"
        answer = ours.recv()
    finally:
        process.kill()
        process.join()
    assert not isinstance(answer, str), answer
    return list(answer)


def _examine(database_url: str, secret_keys: Sequence[str], folders: Sequence[str], answer: Any) -> None:
    try:
        answer.send(_found(database_url, secret_keys, folders))
    except BaseException as error:  # noqa: BLE001  # it is the answer
        answer.send(f"the doctor failed: {error!r}")


def _found(database_url: str, secret_keys: Sequence[str], folders: Sequence[str]) -> list[str]:
    from django.conf import settings
    from django.core.files.storage import Storage, storages
    from django.db import connection, connections
    from django.db.migrations.recorder import MigrationRecorder

    from tasks_app.doctor import Examination, examine

    class Folders(Storage):
        def exists(self, name: str) -> bool:
            return any(Path(folder, name).exists() for folder in folders)

    storages._storages["files"] = Folders()  # type: ignore[attr-defined]  # where Django keeps them
    settings.SECRET_KEY_FALLBACKS = list(secret_keys)
    # Not merged into the settings of the tests, which may have options of the other database.
    connections.settings = connections.configure_settings({"default": dict(dj_database_url.parse(database_url))})
    connections["default"] = connections.create_connection("default")
    if not MigrationRecorder(connection).applied_migrations():
        return []
    return [f"{found.kind}: {found.problem}" for found in examine(None, Examination())]


if multiprocessing.parent_process() is None and os.environ.get("DJANGO_SETTINGS_MODULE"):
    import django

    django.setup()
