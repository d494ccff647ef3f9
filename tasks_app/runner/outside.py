"""The end of a run that is written outside it: the process ends, or the agent does not end."""

import logging
from collections.abc import Callable

from django.db import DatabaseError

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.errors import AWAY
from tasks_app.database.rows import RunRow
from tasks_app.event_log import TaskRead, change
from tasks_app.runner.writer import Ending, Writer

log = logging.getLogger(__name__)
RELEASE_PATIENCE = 0.5
"""Seconds for which a process that ends asks again for a row that another transaction has locked."""


async def end_outside(read: TaskRead, writer: Writer | None, ending: Ending, row: Callable[[str], RunRow]) -> None:
    """Write the end of a run on any loop, with what its writer has not written.

    `row` returns the run's row for an outcome. If the database does not accept it, the lease of the run runs out.
    """
    document = read.document
    rest = await writer.close() if writer else None
    if writer and rest and writer.end_state is not None:
        ending = Ending(None, row(writer.end_state))  # The agent's last action has ended the run.
    spent = writer.unwritten if writer else None
    item = change(
        document.id,
        document.context_id,
        [*(rest.events if rest else []), *([ending.event] if ending.event else [])],
        now=clock.now(),
        actor="runner",
        fence=read.fence,
        attempts=ending.attempts,
        delay=ending.delay,
        run=ending.run,
        files=rest.files if rest else [],
        position=rest.position if rest else None,
        spent=spent,
        settles=read.reserved > 0,
    )
    try:
        if await bridge.ask(item, patience=RELEASE_PATIENCE):
            if writer is not None and spent is not None:
                writer.reported = spent
            log.info("task %s fence %d: %s", document.id, read.fence, ending.run.outcome)
    except (DatabaseError, *AWAY) as error:
        sentence = "task %s fence %d could not be released, its lease runs out: %s"
        log.warning(sentence, document.id, read.fence, error)
