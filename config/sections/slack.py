"""The Slack front."""

from config.environment import flag, number, text, whole

A2A_SLACK = flag("A2A_SLACK")
"""Take questions from Slack at `/slack/events`, and answer them in their threads. It needs the extra `slack`
(docs/systems/slack.md)."""
A2A_SLACK_SIGNING_SECRET = text("A2A_SLACK_SIGNING_SECRET")
"""The signing secret of the Slack app, for workspaces that are added without one of their own."""
A2A_SLACK_API = text("A2A_SLACK_API", "https://slack.com/api/")
"""The address of Slack's Web API. Files of questions are fetched from its host and from `files.slack.com` alone."""
A2A_SLACK_EDIT_SECONDS = number("A2A_SLACK_EDIT_SECONDS", 1.2, 0.05, 60)
"""The pause between two calls of Slack's Web API for one channel, and between two edits in one workspace."""
A2A_SLACK_RETRY_HOURS = number("A2A_SLACK_RETRY_HOURS", 6, 0.001, 720)
"""The time for which a reply is tried again while Slack is away."""
A2A_SLACK_QUESTIONS = whole("A2A_SLACK_QUESTIONS", 100, 1, 10_000)
"""Questions from Slack that a process answers at the same time."""
