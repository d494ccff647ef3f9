"""Both storages."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True, params=["folder", "memory"])
def _storage(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> None:
    backends = {
        "folder": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}},
        "memory": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    }
    settings.STORAGES = {**settings.STORAGES, "files": backends[request.param]}
