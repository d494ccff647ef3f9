"""The agents we ship."""

from tasks_app.agents import examples as examples  # registers them
