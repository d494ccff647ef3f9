"""The operators' door: pages that show what is stored, and actions that go through operations."""

from django.conf import settings
from django.contrib import admin

from tasks_app.admin import (
    accounts,
    acts,
    audit,
    batches,
    budgets,
    deliveries,
    devices,
    exchanges,
    keys,
    limits,
    logins,
    memory,
    permissions,
    processes,
    receivers,
    refusals,
    relays,
    shared_streams,
    slack,
    tasks,
    tokens,
    usage,
    users,
    webhooks,
    workflows,
)
from tasks_app.admin.text import NONE

__all__ = [
    "accounts",
    "acts",
    "audit",
    "batches",
    "budgets",
    "deliveries",
    "devices",
    "exchanges",
    "keys",
    "limits",
    "logins",
    "memory",
    "permissions",
    "processes",
    "receivers",
    "refusals",
    "relays",
    "shared_streams",
    "slack",
    "tasks",
    "tokens",
    "usage",
    "users",
    "webhooks",
    "workflows",
]

admin.site.site_header = admin.site.site_title = "Taskdesk"
admin.site.index_title = "Tasks, calls, webhooks and keys"
# "View site" leads to the public pages.
admin.site.site_url = "/" if settings.A2A_FRONT_PAGE else "/agents/"
admin.site.empty_value_display = NONE
admin.site.final_catch_all_view = False  # not_found.py answers instead, inside the admin's frame
