"""Checks of the database, the storage of files and the data folder."""

import sqlite3
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it
from django.core.files.storage import storages


@register()
def check_sqlite(**_: Any) -> list[CheckMessage]:
    """Check the version of SQLite.

    a2a.E001: SQLite is older than 3.35, which has no RETURNING.
    """
    if not uses_sqlite() or sqlite3.sqlite_version_info >= (3, 35):
        return []
    hint = "Use a newer Python build, or PostgreSQL through DATABASE_URL."
    return [Error(f"SQLite {sqlite3.sqlite_version} has no RETURNING; 3.35 is needed.", hint=hint, id="a2a.E001")]


@register()
def check_file_storage(**_: Any) -> list[CheckMessage]:
    """Check the storage of files.

    a2a.E020: `A2A_FILE_STORAGE` with its options cannot be used.
    """
    try:
        storages["files"]
    except Exception as error:  # noqa: BLE001  # a storage that an operator chose may raise anything
        hint = "See A2A_FILE_STORAGE and A2A_FILE_STORAGE_OPTIONS."
        return [Error(f"The storage of files cannot be used: {error}", hint=hint, id="a2a.E020")]
    return []


@register()
def check_data_folder(**_: Any) -> list[CheckMessage]:
    """Check the rights of the data folder.

    a2a.W005: other users of this machine can look into `DATA_DIR`.
    """
    mode = settings.DATA_DIR.stat().st_mode if settings.DATA_DIR.exists() else 0
    if not mode & 0o077:
        return []
    hint = f"chmod 700 {settings.DATA_DIR}, or set DATA_DIR to a folder of its own."
    return [Warning("Other users of this machine can look into DATA_DIR.", hint=hint, id="a2a.W005")]


@register()
def check_secret(**_: Any) -> list[CheckMessage]:
    """Check that processes that share a database share a secret.

    a2a.W003: PostgreSQL without `SECRET_KEY`.
    """
    if not settings.DEVELOPMENT or uses_sqlite():
        return []
    hint = "Set SECRET_KEY, the same for all: without it API keys made with one data folder are unknown with another."
    return [Warning("Processes that share a database need one SECRET_KEY.", hint=hint, id="a2a.W003")]


def uses_sqlite() -> bool:
    """Return whether the database is SQLite, which is for one process."""
    return str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3")
