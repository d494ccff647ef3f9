"""The Django application. At the start it finds the agents of all applications, as Django finds their models."""

import sys
from functools import partial
from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.conf import LazySettings, settings
from django.db.models.signals import post_migrate
from django.utils.autoreload import autoreload_started
from django.utils.module_loading import autodiscover_modules

from tasks_app import agent_files, relays, zones
from tasks_app.discovery import discover, import_agents


class TasksAppConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Taskdesk"

    def ready(self) -> None:
        """Import agents.py of every installed application, A2A_AGENT_MODULES, and the modules of A2A_AGENTS_DIR."""
        from tasks_app import checks  # noqa: F401  # registers the checks; it needs the models

        _read_settings_plainly()
        post_migrate.connect(_set_roles, dispatch_uid="roles")
        autoreload_started.connect(agent_files.watch)
        relays.register()
        zones.register()
        discover(partial(autodiscover_modules, "agents"))
        for module in settings.A2A_AGENT_MODULES:
            import_agents(module)
        if settings.A2A_AGENTS_DIR:
            agent_files.folder.begin(sys.argv)


def _read_settings_plainly() -> None:
    """Make the read of a setting a plain attribute access.

    With each read of an attribute, a lazy object of Django checks whether the value is a method that it proxies. The
    code reads no such method of the settings. The check takes eight times as long as the read, and each call of a
    client reads ten settings.
    """
    LazySettings.__getattribute__ = object.__getattribute__  # type: ignore[method-assign]  # as above


def _set_roles(sender: AppConfig, apps: Any = installed, **_: Any) -> None:
    """Give the roles of operators their permissions, once Django has made those of every application before the last.

    Django sends the signal for one application after the other, and this function hears it before Django's own does.
    """
    if sender is [each for each in installed.get_app_configs() if each.models_module][-1]:
        from tasks_app.operators.roles import set_permissions

        set_permissions(apps)
