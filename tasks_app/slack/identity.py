"""The workspace that a bot token belongs to, as Slack itself says."""

import asyncio

from asgiref.sync import async_to_sync
from msgspec import Struct

SECONDS = 20.0


class Identity(Struct, frozen=True):
    """The ids of a workspace, and those of the bot in it."""

    team_id: str
    name: str
    bot_user_id: str
    bot_id: str


def identify(token: str) -> Identity:
    """Return the workspace of a bot token. Raises ValueError with a sentence for operators."""
    return async_to_sync(_identify)(token)


async def _identify(token: str) -> Identity:
    from tasks_app.slack.web_api import SlackAway, SlackRefused, WebApi  # its httpx takes as long to load as Django

    api = WebApi()
    try:
        async with asyncio.timeout(SECONDS):
            answer = await api.call(token, "auth.test", {})
    except (SlackAway, TimeoutError) as error:
        raise ValueError(f"Slack gives no answer ({error or 'no answer in time'}): try again") from None
    except SlackRefused as error:
        raise ValueError(f"Slack refuses the bot token: {error}") from None
    finally:
        await api.close()
    names = ("team_id", "team", "user_id", "bot_id")
    return Identity(*(str(answer.get(name) or "")[: 80 if name == "team" else 32] for name in names))
