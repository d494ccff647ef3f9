"""Findings about disks of this machine that are almost full: those of an SQLite database, of files and of secrets."""

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import connection

from tasks_app.database.sql import on_postgres
from tasks_app.doctor.finding import Finding
from tasks_app.files.storage import storage

ROOM = 100_000_000
"""Free bytes of a disk below which it is named."""


def examine_disks(_now: datetime) -> Iterator[Finding]:
    """Yield findings about disks. That of a PostgreSQL server cannot be seen from here."""
    disks = {folder.stat().st_dev: folder for folder in _folders() if folder.is_dir()}
    for folder in disks.values():
        free = shutil.disk_usage(folder).free
        if free < ROOM:
            yield Finding(
                kind="disk",
                subject=str(folder),
                problem=f"The disk of {folder} has {free / 1_000_000:.1f} MB left.",
                remedy="Make room. On a full disk nothing is stored: calls fail, and tasks do not go on.",
            )


def _folders() -> Iterator[Path]:
    yield Path(settings.DATA_DIR)
    if location := getattr(storage(), "location", ""):
        yield Path(location)
    if not on_postgres():
        yield Path(connection.settings_dict["NAME"]).parent
