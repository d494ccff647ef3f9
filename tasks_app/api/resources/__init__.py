"""The resources of the operators' API, a module each; docs/operators-api.md says how to add one."""

from tasks_app.api.resource import Resource
from tasks_app.api.resources.accounts import Accounts
from tasks_app.api.resources.acts import Acts
from tasks_app.api.resources.audit import Entries, Refused
from tasks_app.api.resources.batches import Batches
from tasks_app.api.resources.budgets import Budgets
from tasks_app.api.resources.clients import Clients
from tasks_app.api.resources.deliveries import Deliveries
from tasks_app.api.resources.exchanges import Exchanges
from tasks_app.api.resources.keys import Keys
from tasks_app.api.resources.limits import Limits
from tasks_app.api.resources.logins import Logins
from tasks_app.api.resources.memory import Memory
from tasks_app.api.resources.permissions import Permissions
from tasks_app.api.resources.principals import Principals
from tasks_app.api.resources.processes import Processes
from tasks_app.api.resources.receivers import Receivers
from tasks_app.api.resources.refusals import Refusals
from tasks_app.api.resources.relays import Relays
from tasks_app.api.resources.roles import Roles
from tasks_app.api.resources.shared_streams import SharedStreams
from tasks_app.api.resources.slack import SlackQuestions, SlackWorkspaces
from tasks_app.api.resources.tasks import Tasks
from tasks_app.api.resources.tenants import Tenants
from tasks_app.api.resources.tokens import Tokens
from tasks_app.api.resources.usage import UsageHistory
from tasks_app.api.resources.users import Users
from tasks_app.api.resources.webhooks import Webhooks
from tasks_app.api.resources.workflows import Workflows

RESOURCES: tuple[type[Resource], ...] = (
    Accounts,
    Acts,
    Batches,
    Budgets,
    Clients,
    Deliveries,
    Entries,
    Exchanges,
    Keys,
    Limits,
    Logins,
    Memory,
    Permissions,
    Principals,
    Processes,
    Receivers,
    Refused,
    Refusals,
    Relays,
    Roles,
    SharedStreams,
    SlackQuestions,
    SlackWorkspaces,
    Tasks,
    Tenants,
    Tokens,
    UsageHistory,
    Users,
    Webhooks,
    Workflows,
)
"""All resources, by their paths."""
