"""``python tests/faults/shifted.py DAYS manage.py serve ...``: a process whose machine's clock is wrong by so much.

DAYS may be the path of a file with the number. When the file changes, the clock is set.
"""

import runpy
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import time_machine
from psycopg import sql

from tests.faults.forks import ROOT, SHIFTED
from tests.faults.nodes import Node


def shift(node: Node, days: float | Path) -> Node:
    """Let the node, when it is started, run with the time of day wrong by so many days, or by those in a file."""
    python, *rest = node.command
    node.command = [python, str(SHIFTED), str(days), *rest]
    return node


class DatabaseClock:
    """The clock of a PostgreSQL database, before the processes that use it start. It shadows PostgreSQL's functions."""

    def __init__(self, url: str) -> None:
        self.url = url
        name = urlsplit(url).path[1:]
        self._execute(sql.SQL("create table public.clock (ahead interval); insert into public.clock values ('0')"))
        for function in map(sql.Identifier, ("now", "clock_timestamp")):
            body = sql.SQL(
                "create function public.{} () returns timestamptz language sql as "
                "'select pg_catalog.{} () + ahead from public.clock'"
            )
            self._execute(body.format(function, function))
        path = sql.SQL("alter database {} set search_path = public, pg_catalog")
        self._execute(path.format(sql.Identifier(name)))

    def set_ahead(self, ahead: timedelta) -> None:
        self._execute(sql.SQL("update public.clock set ahead = {}").format(ahead))

    def _execute(self, statement: sql.Composable) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


def main(days: str, *arguments: str) -> None:
    sys.argv = list(arguments)
    sys.path.insert(0, str(ROOT))
    file = Path(days) if days.startswith("/") else None
    with time_machine.travel(datetime.now(UTC) + timedelta(days=0 if file else float(days)), tick=True) as machine:
        if file:
            threading.Thread(target=_follow, args=(machine, file), daemon=True).start()
        runpy.run_path(sys.argv[0], run_name="__main__")


def _follow(machine: time_machine.Traveller, file: Path) -> None:
    """Set the clock whenever the file has another number of days."""
    last = 0.0
    while True:
        with suppress(OSError, ValueError):  # It may be written at this moment.
            days = float(file.read_text(encoding="ascii"))
            machine.shift(timedelta(days=days - last))
            last = days
        time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
