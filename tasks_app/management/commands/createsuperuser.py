"""manage.py createsuperuser: Django's command, which records the account that it makes as an act."""

from typing import Any

from django.contrib.auth.management.commands.createsuperuser import Command as DjangoCommand
from django.contrib.auth.models import User
from django.core.management.base import CommandParser
from django.db.models.signals import post_save

from tasks_app.management.arguments import add_operator, give_readers, read_email, read_operator, read_text
from tasks_app.operators.audit import Change, record_acts


class Command(DjangoCommand):
    help = "Make an operator with all rights."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        give_readers(parser, username=read_text, email=read_email)
        add_operator(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the account and record it. Django's command does not return the account, so a signal does."""
        by = read_operator(options)

        def record(instance: User, created: bool, **_: Any) -> None:
            if created:
                record_acts(by, "make", Change(instance, {}, {"is_superuser": instance.is_superuser}))

        post_save.connect(record, sender=User, weak=False)
        try:
            super().handle(*args, **options)
        finally:
            post_save.disconnect(record, sender=User)
