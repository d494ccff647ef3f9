"""manage.py worker: a Celery worker that runs agents, like `celery -A config worker` with less output."""

import sys
from argparse import ArgumentParser
from typing import Any

from celery import signals
from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.hints.dispatch import celery_app, queues_of_agents
from tasks_app.management.arguments import read_text
from tasks_app.management.database_command import DatabaseCommand


class Command(DatabaseCommand):
    help = "Run queued agents, woken through CELERY_BROKER_URL, until SIGINT or SIGTERM."
    requires_system_checks = "__all__"
    requires_migrations_checks = False  # `handle` checks them after the settings, whose errors come first

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queues", type=read_text, default="", help="queues to run, separated by commas; all by default"
        )
        parser.add_argument(
            "--processes",
            type=int,
            help="run this many processes with one run each, for CPU-bound agents; one process of threads by default",
        )

    def handle(self, *args: Any, queues: str, processes: int | None, **options: Any) -> None:
        if not settings.CELERY_BROKER_URL:
            raise CommandError(
                "CELERY_BROKER_URL is not set: a worker needs the broker that the web processes publish to. "
                "Without one, `manage.py serve` runs agents itself."
            )
        names = {name.strip() for name in queues.split(",") if name.strip()}
        existing = queues_of_agents()
        if unknown := sorted(names - existing):
            raise CommandError(
                f"--queues: no agent has the queue {', '.join(unknown)}. The queues are {', '.join(sorted(existing))}."
            )
        if processes is not None and processes < 1:
            raise CommandError(f"--processes must be 1 or more, not {processes}.")
        self.check_migrations()
        self.check(include_deployment_checks=True, tags=["start"], databases=["default"])
        pool = ["--pool", "prefork", "--concurrency", str(processes)] if processes else ["--pool", "threads"]
        only = ["--queues", ",".join(sorted(names))] if names else []
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]

        def print_ready(**_: Any) -> None:
            kind = f"{processes} processes" if processes else "threads"
            self.stdout.write(f"Taskdesk worker is ready: {kind}, queues {', '.join(sorted(names or existing))}")
            self.stdout.flush()

        signals.worker_ready.connect(print_ready, weak=False)
        exit_codes: list[int] = []
        signals.worker_shutdown.connect(lambda sender, **_: exit_codes.append(sender.exitcode or 0), weak=False)
        celery_app().worker_main(["--quiet", "worker", *pool, *only, *quiet])
        sys.exit(max(exit_codes, default=0))
