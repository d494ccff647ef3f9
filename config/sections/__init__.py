"""The settings by section. A module is a section, and its docstring the title; config/settings.py joins them."""

# First of all: it reads the file .env, which may have settings of every section.
from config.sections import process as _process  # noqa: F401

SECTIONS = (
    *(
        "process",
        "addresses",
        "cards",
        "agents",
        "shares",
        "calls",
        "shared_streams",
        "workflows",
        "zones",
        "memory",
        "batches",
        "retention",
        "identity",
        "oauth",
        "logins",
        "files",
        "webhooks",
        "slack",
    ),
    *("rates", "database"),
)
"""The sections in the order of docs/reference/settings.md."""
