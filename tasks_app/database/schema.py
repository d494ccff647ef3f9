"""Compares the tables of the database with those of this version."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def lacking() -> int:
    """Return how many migrations of this version were not applied to the database."""
    return len(_all_migrations() - MigrationRecorder(connection).applied_migrations().keys())


@cache
def _all_migrations() -> frozenset[tuple[str, str]]:
    """Return the migrations of all apps by their file names. Importing them takes longer than the work of a command."""
    return frozenset((app.label, name) for app in apps.get_app_configs() for name in _names(app.label))


def _names(app: str) -> Iterator[str]:
    package, _ = MigrationLoader.migrations_module(app)
    try:
        folders = import_module(package).__path__ if package else ()
    except ModuleNotFoundError:
        return  # an application without tables
    for module in iter_modules(folders):
        if not module.ispkg and module.name[0] not in "_~":
            yield module.name
