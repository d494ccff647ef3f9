"""The pages of docs/reference, generated from the code: settings, methods, errors, scopes, checks and commands."""

from collections.abc import Callable

from tasks_app.management.reference import checks, commands, errors, methods, scopes, settings

PAGES: dict[str, Callable[[], str]] = {
    "checks": checks.make,
    "commands": commands.make,
    "errors": errors.make,
    "methods": methods.make,
    "scopes": scopes.make,
    "settings": settings.make,
}
"""The function that makes the Markdown of each page. Its result depends on the code alone."""
