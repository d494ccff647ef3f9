"""The sessions of operators: Django's in the database, by names that it can search for."""

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore


class SessionStore(DatabaseStore):
    """Django's sessions. A name that no session can have, as of a made-up cookie, is not looked up.

    A quoted cookie may have U+0000 in it, which PostgreSQL refuses to search for.
    """

    def __init__(self, session_key: str | None = None) -> None:
        is_name = session_key is not None and session_key.isascii() and session_key.isalnum()
        super().__init__(session_key if is_name else None)
