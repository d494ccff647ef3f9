"""manage.py execution: the execution zone behind a broker, without HTTP."""

import asyncio
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.management.database_command import DatabaseCommand
from tasks_app.process import services
from tasks_app.process.main_loop import obey_signals, run_to_end
from tasks_app.runner.fork_server import finish
from tasks_app.runner.runner import runner
from tasks_app.zones.queue import QueueDoor

PATIENCE = 1.0
"""Seconds for which a call that waits for its task may go on after the order to stop."""


class Command(DatabaseCommand):
    requires_system_checks = "__all__"
    help = "Execute the calls of a verification zone that come through A2A_ZONE_QUEUE, until SIGINT or SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        if not (settings.A2A_ZONE_QUEUE and settings.A2A_ZONE_SECRET):
            raise CommandError("A2A_ZONE_QUEUE and A2A_ZONE_SECRET are not set: both zones need the same ones.")
        self.check(include_deployment_checks=True, tags=["start"], databases=["default"])
        run_to_end(None, self._serve())
        # All data is written by now. A normal exit would wait for sync agents that hang.
        finish(runner.exit_code)

    async def _serve(self) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        obey_signals(lambda _: stopping.set())
        await asyncio.to_thread(services.start)
        door = QueueDoor(settings.A2A_ZONE_QUEUE, settings.A2A_ZONE_SECRET, loop)
        thread = threading.Thread(target=door.run, name="zone queue")
        thread.start()
        self.stdout.write("The execution zone is ready.")
        self.stdout.flush()
        await stopping.wait()
        door.stopping.set()
        await asyncio.to_thread(thread.join, PATIENCE)
        services.drain()
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(services.stop)
