"""The data folder of a server, and its private files."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

OWN_FILES = ("admin.password", "api.key", "dev_key.", "files", "lock", "secret.key", "taskdesk.", "test.", "tests")
"""Prefixes of the names of all files that Taskdesk keeps in DATA_DIR."""


def make_folder(folder: Path) -> Path:
    """Make the folder if it does not exist, readable by this user alone: it holds every request and its answer.

    A folder that exists is closed to other users if it has no files but ours.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR: cannot make the folder {folder}: {error.strerror}") from None
    with suppress(OSError):  # a folder of another user stays as it is; check a2a.W005 warns if it is open
        is_shared = folder.stat().st_mode & stat.S_ISVTX  # as /tmp is
        if not is_shared and all(path.name.startswith(OWN_FILES) for path in folder.iterdir()):
            close_to_others(folder)
    return folder


def close_to_others(path: Path) -> None:
    """Take away all rights of other users to a file or folder."""
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(mode & 0o700)


def make_private_file(name: str) -> None:
    """Make the SQLite file before SQLite does, so that other users cannot read it. Its journals get the same rights."""
    if name.startswith((":", "file:")):
        return  # a database in memory, or an address
    path = Path(name)
    with suppress(OSError):  # connecting reports the error
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
    for suffix in ("", "-wal", "-shm"):
        close_to_others(path.with_name(path.name + suffix))


def read_or_make_secret(path: Path) -> str:
    """Return the secret in this file. The first use makes it, readable by this user alone."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with suppress(FileExistsError), os.fdopen(os.open(path, new, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR: cannot keep {path}: {error.strerror}") from None
