"""The agents that Taskdesk ships."""

from tasks_app.agents import examples as examples  # registers them
