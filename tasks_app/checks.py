"""Misconfigurations that Django's check framework reports, with ids."""

import sqlite3
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from a2a.agents import registry
from tasks_app import llm


@register()
def check_sqlite(**_: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3") or sqlite3.sqlite_version_info >= (3, 35):
        return []
    hint = "Use a newer Python build, or PostgreSQL through DATABASE_URL."
    return [Error(f"SQLite {sqlite3.sqlite_version} has no RETURNING; 3.35 is needed.", hint=hint, id="a2a.E001")]


@register()
def check_default_agent(**_: Any) -> list[CheckMessage]:
    if registry.get(settings.A2A_DEFAULT_AGENT):
        return []
    hint = f"Set A2A_DEFAULT_AGENT to one of {', '.join(registry.names())}, or its module in A2A_AGENT_MODULES."
    return [Error(f"There is no agent {settings.A2A_DEFAULT_AGENT}.", hint=hint, id="a2a.E002")]


@register()
def check_llm(**_: Any) -> list[CheckMessage]:
    sentence = llm.misconfigured()
    return [Error(sentence, hint="Without address and model there is no llm agent.", id="a2a.E003")] if sentence else []
