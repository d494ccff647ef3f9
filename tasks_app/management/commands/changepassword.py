"""manage.py changepassword: Django's command, whose change ends the operator's tokens and is an act."""

from getpass import getuser
from typing import Any

from django.contrib.auth.management.commands.changepassword import Command as DjangoCommand
from django.core.management.base import CommandError, CommandParser

from tasks_app.management.arguments import add_operator, give_readers, read_operator, read_text
from tasks_app.operators import users


class Command(DjangoCommand):
    help = "Change the password of an operator, whose sessions and tokens end."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        give_readers(parser, username=read_text)
        add_operator(parser)

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Change the password, then record the act. A transaction for both would wait for a person."""
        try:
            answer: str | None = super().handle(*args, **options)
        except EOFError:
            raise CommandError(
                "This command asks for the password at a terminal. "
                "`manage.py a2a users password NAME` makes a random one."
            ) from None
        users.record_password(read_operator(options), users.find_user(options["username"] or getuser()))
        return answer
