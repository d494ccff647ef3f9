"""Outages of the database: connections that are cut, and a database that refuses all connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.faults.clients import Client, inputs

CUT = """select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()"""


def cut(database: str) -> int:
    """End every connection to the database, as its restart does, and count them."""
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(CUT).fetchone()
    assert row
    return int(row[0])


@contextmanager
def outage(server: str, database: str) -> Iterator[None]:
    """Take the database away."""
    name = sql.Identifier(urlsplit(database).path[1:])
    allow = sql.SQL("alter database {} with allow_connections {}")
    with psycopg.connect(server, autocommit=True) as connection, psycopg.connect(database, autocommit=True) as inside:
        connection.execute(allow.format(name, sql.SQL("false")))
        try:
            inside.execute(CUT)
            yield
        finally:
            connection.execute(allow.format(name, sql.SQL("true")))


async def fails(caller: Client) -> bool:
    """Return whether a send fails. Its answer must be an error of ours."""
    reply = await caller.reply("SendMessage", {"message": inputs(word="hello")})
    if "error" in reply:
        assert reply["error"]["code"] in {-32603, -38013}
    return "error" in reply
