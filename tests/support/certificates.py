"""The certificates of authorities, loaded once in a process: each client of HTTPS would take 25 ms for them."""

import ssl
from functools import cache


def prepare() -> None:
    ssl.create_default_context = cache(ssl.create_default_context)
