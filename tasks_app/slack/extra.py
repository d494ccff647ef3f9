"""Whether the Slack front is on: it needs the setting A2A_SLACK and the extra `slack`."""

from importlib.util import find_spec

from django.conf import settings

INSTALL = "pip install 'taskdesk[server,slack]'"


def is_installed() -> bool:
    """Return whether slack-bolt is installed."""
    return find_spec("slack_bolt") is not None


def is_on() -> bool:
    """Return whether `/slack/events` takes events."""
    return bool(settings.A2A_SLACK) and is_installed()


def find_problem() -> str:
    """Return a sentence about what the front lacks; empty if it has all."""
    return "" if is_installed() else "A2A_SLACK=true, but slack-bolt is not installed: /slack/events is not found."
