"""The application: finds the agents of all others, as Django finds their models."""

from functools import partial

from django.apps import AppConfig
from django.conf import settings
from django.utils.module_loading import autodiscover_modules

from tasks_app.discovery import discover, import_agents


class TasksAppConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Taskdesk"

    def ready(self) -> None:
        """Imports agents.py of every installed app and the modules of A2A_AGENT_MODULES."""
        from tasks_app import checks  # noqa: F401  # registers; needs the apps

        discover(partial(autodiscover_modules, "agents"))
        for module in settings.A2A_AGENT_MODULES:
            import_agents(module)
