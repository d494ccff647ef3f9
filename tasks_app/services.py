"""The background work of a process: the dispatcher, the runner, the sweeper. Started once, stopped in order."""

import atexit
import logging
import threading

from tasks_app.bridge import Do, bridge
from tasks_app.dispatch import LocalDispatcher
from tasks_app.event_log import release_all
from tasks_app.exchanges import recorder
from tasks_app.readers import readers
from tasks_app.runner import runner
from tasks_app.sweeper import sweeper, take_up

log = logging.getLogger(__name__)
dispatcher = LocalDispatcher()
_started = False
_starting = threading.Lock()


def start() -> None:
    """Starts what is not running yet; cheap when all is."""
    global _started  # noqa: PLW0603  # once a process
    if _started:
        return
    with _starting:
        if not _started:
            runner.start()
            dispatcher.start()
            sweeper.start()
            atexit.register(stop)
            _started = True


def take_over() -> None:
    """At the start of the only process there is: nobody else can hold a lease, so what was interrupted goes on now."""
    if bridge.do(Do(release_all)):
        log.info("%d interrupted tasks are taken up again", take_up())


def drain() -> None:
    """On the loop of the doors: no new work, and every stream and waiting call is answered now."""
    readers.drain()


def stop() -> None:
    """Ends the background work: no more claims, a grace for what runs, then everything that waits is written."""
    global _started  # noqa: PLW0603  # once a process
    with _starting:
        if not _started:
            return
        _started = False
    atexit.unregister(stop)
    dispatcher.stop()
    sweeper.stop()
    runner.stop()
    recorder.flush()
    bridge.stop()
