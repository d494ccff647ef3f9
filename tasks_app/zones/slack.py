"""Questions from Slack, as verification takes them."""

from collections.abc import AsyncGenerator

from tasks_app.slack.attachments import Luggage
from tasks_app.slack.questions import Turn
from tasks_app.zones.verification import Attachment, Question, Reply, ask

DOOR = "slack"


async def ask_for_slack(turn: Turn, luggage: Luggage) -> AsyncGenerator[Reply, None]:
    """Have the question of a turn verified and executed, once, and yield its answer while it grows.

    Raises the errors of a2a/errors.py.
    """
    replies = ask(_question_of(turn, luggage), turn.caller, door=DOOR)
    del luggage  # The iteration may take hours, and only its beginning needs the files.
    async for reply in replies:
        yield reply


def _question_of(turn: Turn, luggage: Luggage) -> Question:
    return Question(
        channel=turn.channel,
        text=turn.text,
        bot_token=turn.token,
        user=turn.user,
        thread=turn.thread,
        correlation_id=turn.id,
        attachments=tuple(
            Attachment(name=file.name, mimetype=file.mimetype, size=file.size, content=file.content)
            for file in luggage.files
        ),
        team=turn.team_id,
        agent="" if turn.continues else turn.agent,
        task=turn.continues,
        key=turn.id,
    )
