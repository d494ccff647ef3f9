"""manage.py createsuperuser: Django's command, which records the account that it makes as an act."""

import os
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.management.commands.createsuperuser import Command as DjangoCommand
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db.models.signals import post_save

from tasks_app.management.arguments import add_operator, give_readers, read_email, read_operator, read_text
from tasks_app.operators import users
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
        if not options["interactive"]:
            _check_password(options)

        def record(instance: User, created: bool, **_: Any) -> None:
            if created:
                record_acts(by, "make", Change(instance, {}, {"is_superuser": instance.is_superuser}))

        post_save.connect(record, sender=User, weak=False)
        try:
            super().handle(*args, **options)
        finally:
            post_save.disconnect(record, sender=User)

    def _validate_username(self, username: str, verbose_field_name: str, database: str) -> str | None:
        """Return the error of a name, also of one that another operator has in capitals, as the other doors refuse."""
        error: str | None = super()._validate_username(  # type: ignore[misc]  # the stubs of Django lack it
            username, verbose_field_name, database
        )
        if error is None and (other := users.find_namesake(username)):
            return f"Error: There is a user {other.username} already: choose another name."
        return error


def _check_password(options: Mapping[str, Any]) -> None:
    """Check the password of the environment, which Django's command checks only if a person types it.

    Raises CommandError.
    """
    password = os.environ.get("DJANGO_SUPERUSER_PASSWORD")
    if password is None:
        return
    name = options["username"] or os.environ.get("DJANGO_SUPERUSER_USERNAME", "")
    email = options["email"] or os.environ.get("DJANGO_SUPERUSER_EMAIL", "")
    try:
        validate_password(password, User(username=name, email=email))
    except ValidationError as error:
        raise CommandError(f"DJANGO_SUPERUSER_PASSWORD is refused: {' '.join(error.messages)}") from None
