"""manage.py a2a NOUN: commands for operators of the platform. Each noun is a module of management/nouns."""

from argparse import ArgumentParser
from typing import Any

from tasks_app.management.database_command import DatabaseCommand
from tasks_app.management.nouns import Noun
from tasks_app.management.nouns.accounts import ACCOUNTS
from tasks_app.management.nouns.acp import ACP
from tasks_app.management.nouns.acts import ACTS
from tasks_app.management.nouns.audit import AUDIT
from tasks_app.management.nouns.batches import BATCHES
from tasks_app.management.nouns.budgets import BUDGETS
from tasks_app.management.nouns.cardkey import CARDKEY
from tasks_app.management.nouns.clients import CLIENTS
from tasks_app.management.nouns.doctor import DOCTOR
from tasks_app.management.nouns.keys import KEYS
from tasks_app.management.nouns.limits import LIMITS
from tasks_app.management.nouns.load import LOAD
from tasks_app.management.nouns.logins import LOGINS
from tasks_app.management.nouns.memory import MEMORY
from tasks_app.management.nouns.operators import OPERATORS
from tasks_app.management.nouns.permissions import PERMISSIONS
from tasks_app.management.nouns.principals import PRINCIPALS
from tasks_app.management.nouns.processes import PROCESSES
from tasks_app.management.nouns.purge import PURGE
from tasks_app.management.nouns.receivers import RECEIVERS
from tasks_app.management.nouns.reference import REFERENCE
from tasks_app.management.nouns.refusals import REFUSALS
from tasks_app.management.nouns.relays import RELAYS
from tasks_app.management.nouns.roles import ROLES
from tasks_app.management.nouns.shared_streams import SHARED_STREAMS
from tasks_app.management.nouns.slack import SLACK
from tasks_app.management.nouns.stored import STORED
from tasks_app.management.nouns.tenants import TENANTS
from tasks_app.management.nouns.usage import USAGE
from tasks_app.management.nouns.users import USERS
from tasks_app.management.nouns.workflows import WORKFLOWS
from tasks_app.operators.texts import find_warnings

OPERATING: dict[str, Noun] = {
    "accounts": ACCOUNTS,
    "acp": ACP,
    "acts": ACTS,
    "audit": AUDIT,
    "batches": BATCHES,
    "budgets": BUDGETS,
    "cardkey": CARDKEY,
    "clients": CLIENTS,
    "doctor": DOCTOR,
    "keys": KEYS,
    "limits": LIMITS,
    "load": LOAD,
    "logins": LOGINS,
    "memory": MEMORY,
    "operators": OPERATORS,
    "permissions": PERMISSIONS,
    "principals": PRINCIPALS,
    "processes": PROCESSES,
    "purge": PURGE,
    "receivers": RECEIVERS,
    "reference": REFERENCE,
    "refusals": REFUSALS,
    "relays": RELAYS,
    "roles": ROLES,
    "shared-streams": SHARED_STREAMS,
    "slack": SLACK,
    "stored": STORED,
    "tenants": TENANTS,
    "usage": USAGE,
    "users": USERS,
    "workflows": WORKFLOWS,
}


def all_nouns() -> dict[str, Noun]:
    """Return all nouns, with those that call agents. Those load the client and its libraries, which takes long."""
    from tasks_app.management.nouns.calls import CALLS

    return OPERATING | CALLS


class Command(DatabaseCommand):
    help = "Operate the platform, and call agents. `manage.py a2a NOUN --help` describes a noun."
    requires_migrations_checks = False  # some nouns need no database; the others are checked below

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.nouns: dict[str, Noun] = {}

    def run_from_argv(self, argv: list[str]) -> None:
        if argv[2:3] and argv[2] in OPERATING:
            self.nouns = OPERATING
        super().run_from_argv(argv)

    def add_arguments(self, parser: ArgumentParser) -> None:
        self.nouns = self.nouns or all_nouns()
        nouns = parser.add_subparsers(dest="noun", required=True)
        for name, noun in self.nouns.items():
            noun.add_arguments(nouns.add_parser(name, help=noun.help))

    def handle(self, *args: Any, **options: Any) -> None:
        noun = self.nouns[options["noun"]]
        if noun.needs_database:
            self.check_migrations()
        noun.handle(self, options)
        for sentence in find_warnings(options.get("scopes") or ""):
            self.stderr.write(sentence)
