"""manage.py worker: a Celery worker that runs agents; the same as `celery -A config worker`, with less talk."""

import sys
from argparse import ArgumentParser
from typing import Any

from celery import signals
from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.hints.dispatch import celery_app, queues_of_agents
from tasks_app.management.operator import DatabaseCommand


class Command(DatabaseCommand):
    help = "Runs queued agents, woken through CELERY_BROKER_URL, until SIGINT or SIGTERM."
    requires_system_checks = "__all__"
    requires_migrations_checks = False  # what is wrong with its settings is said first

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--queues", default="", help="of these queues only, by comma; all of them if left out")
        parser.add_argument(
            "--processes", type=int, help="so many processes, one run each, for agents that need a core"
        )

    def handle(self, *args: Any, queues: str, processes: int | None, **options: Any) -> None:
        if not settings.CELERY_BROKER_URL:
            raise CommandError(
                "CELERY_BROKER_URL is not set: a worker needs the broker that the web processes publish to. "
                "Without one, `manage.py serve` runs agents itself."
            )
        chosen = {name.strip() for name in queues.split(",") if name.strip()}
        if unknown := sorted(chosen - queues_of_agents()):
            known = ", ".join(sorted(queues_of_agents()))
            raise CommandError(f"No agent has the queue {', '.join(unknown)}; there are {known}.")
        if processes is not None and processes < 1:
            raise CommandError("--processes must be 1 or more.")
        self.check_migrations()
        self.check(include_deployment_checks=True, tags=["start"], databases=["default"])
        pool = ["--pool", "prefork", "--concurrency", str(processes)] if processes else ["--pool", "threads"]
        only = ["--queues", ",".join(sorted(chosen))] if chosen else []
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]

        def ready(**_: Any) -> None:
            what = f"{processes} processes" if processes else "threads"
            names = ", ".join(sorted(chosen or queues_of_agents()))
            self.stdout.write(f"Taskdesk worker is ready: {what}, queues {names}")
            self.stdout.flush()

        signals.worker_ready.connect(ready, weak=False)
        ended: list[int] = []
        signals.worker_shutdown.connect(lambda sender, **_: ended.append(sender.exitcode or 0), weak=False)
        celery_app().worker_main(["--quiet", "worker", *pool, *only, *quiet])
        sys.exit(max(ended, default=0))
