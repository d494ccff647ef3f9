"""The scopes that clients may ask for."""

from typing import Any

from tasks_app.callers.scopes import ACP, OWN
from tasks_app.models import OAuthClient


class _Meanings(dict[str, str]):
    """The meanings of scopes. The toolkit's page reads that of each scope of a client, also of one that agents name."""

    def __missing__(self, scope: str) -> str:
        return "What the agents that name this scope allow."


class Scopes:
    """The scopes, as django-oauth-toolkit asks for them: a client has those that its operator gave it."""

    def get_all_scopes(self) -> dict[str, str]:
        """Return what each scope allows."""
        return _Meanings(OWN | ACP)

    def get_available_scopes(self, application: OAuthClient | None = None, *_: Any, **__: Any) -> list[str]:
        """Return the scopes that the client may ask for."""
        return application.scopes.split() if application else sorted(self.get_all_scopes())

    def get_default_scopes(self, application: OAuthClient | None = None, *_: Any, **__: Any) -> list[str]:
        """Return the scopes of a request that names none: all those of the client."""
        return self.get_available_scopes(application)


def describe(scope: str) -> str:
    """Return what a scope allows."""
    return Scopes().get_all_scopes()[scope]
