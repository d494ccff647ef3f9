"""The certificates of authorities in a file, loaded once in a process: each client of HTTPS would take 25 ms."""

import ssl
from functools import cache
from typing import Any

load = ssl.create_default_context
loaded = cache(load)


def prepare() -> None:
    ssl.create_default_context = _context


def _context(*arguments: Any, **files: Any) -> ssl.SSLContext:
    """Return a context, which users of the same files share.

    One of the certificates of the machine is not shared. The client of Redis changes what it checks, and the
    environment may name other certificates by then.
    """
    return loaded(*arguments, **files) if files else load(*arguments)
