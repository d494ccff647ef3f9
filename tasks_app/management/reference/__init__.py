"""The pages of docs/reference, made of the code: settings, methods, errors, checks and commands."""

from collections.abc import Callable

from tasks_app.management.reference import checks, commands, errors, methods, settings

PAGES: dict[str, Callable[[], str]] = {
    "checks": checks.make,
    "commands": commands.make,
    "errors": errors.make,
    "methods": methods.make,
    "settings": settings.make,
}
"""A page's name, and the function that makes its Markdown. The result depends on the code alone."""
