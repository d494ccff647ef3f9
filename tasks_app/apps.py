"""The application: finds the agents of all others, as Django finds their models."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules


class TasksAppConfig(AppConfig):
    name = "tasks_app"
    verbose_name = "Taskdesk"

    def ready(self) -> None:
        """Imports agents.py of every installed app and the modules of A2A_AGENT_MODULES."""
        from tasks_app import checks  # noqa: F401  # registers; needs the apps

        autodiscover_modules("agents")
        for module in settings.A2A_AGENT_MODULES:
            _import(module)


def _import(module: str) -> None:
    if module.startswith("."):
        raise _missing(module)  # a path; import_module would ask for a package
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # The module is there; what it imports is not.
        raise _missing(module) from None
    except SyntaxError as error:
        raise ImproperlyConfigured(f"{error.filename}:{error.lineno}: {error.msg}") from None


def _missing(module: str) -> ImproperlyConfigured:
    hint = "; write it without .py" if module.endswith(".py") else ""
    return ImproperlyConfigured(
        f"A2A_AGENT_MODULES: there is no module {module}; looked for beside manage.py and in PYTHONPATH{hint}"
    )
