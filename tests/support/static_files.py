"""The admin's files, found once in a process: for each test client WhiteNoise looks at all of them anew, which takes
longer than most tests."""

from typing import Any

from whitenoise.middleware import WhiteNoiseMiddleware

_find = WhiteNoiseMiddleware.add_files_from_finders
_found: dict[tuple[str, int | None], dict[str, Any]] = {}
"""The files by their addresses, for each prefix of those and each age that they may have in caches."""


def prepare() -> None:
    WhiteNoiseMiddleware.add_files_from_finders = _add


def _add(middleware: Any) -> None:
    key = (middleware.static_prefix, middleware.max_age)
    if key not in _found:
        _find(middleware)
        _found[key] = dict(middleware.files)
    middleware.files.update(_found[key])
