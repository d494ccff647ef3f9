"""Our own OAuth 2.0 server."""

from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config.environment import flag, number, whole

A2A_OAUTH = flag("A2A_OAUTH")
"""An OAuth 2.0 server of our own, at `/oauth2/`, whose access tokens are credentials here. It needs the extra `oauth`,
and `manage.py migrate` once (docs/identity.md)."""
A2A_OAUTH_TOKEN_SECONDS = whole("A2A_OAUTH_TOKEN_SECONDS", 600, 10, 86_400)
"""The time for which an access token is valid."""
A2A_OAUTH_REFRESH_DAYS = number("A2A_OAUTH_REFRESH_DAYS", 14, 0.001, 365)
"""The longest pause of a client that refreshes its access tokens: its refresh token is valid for this time after the
access token that came with it."""
if A2A_OAUTH and find_spec("oauth2_provider") is None:
    raise ImproperlyConfigured(
        "A2A_OAUTH: the package django-oauth-toolkit is not installed. Install it with pip install 'taskdesk[oauth]', "
        "or set A2A_OAUTH=false"
    )
OAUTH2_PROVIDER_APPLICATION_MODEL = "tasks_app.OAuthClient"
OAUTH2_PROVIDER: dict[str, Any] = {
    "OAUTH2_SERVER_CLASS": "tasks_app.oauth.server.Server",
    "OAUTH2_BACKEND_CLASS": "tasks_app.oauth.server.Core",
    "OAUTH2_VALIDATOR_CLASS": "tasks_app.oauth.validator.Validator",
    "SCOPES_BACKEND_CLASS": "tasks_app.oauth.scopes.Scopes",
    "ACCESS_TOKEN_GENERATOR": "tasks_app.oauth.secrets.make_access_token",
    "REFRESH_TOKEN_GENERATOR": "tasks_app.oauth.secrets.make_refresh_token",
    "ACCESS_TOKEN_EXPIRE_SECONDS": A2A_OAUTH_TOKEN_SECONDS,
    "REFRESH_TOKEN_EXPIRE_SECONDS": A2A_OAUTH_REFRESH_DAYS * 86_400,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "APPLICATION_ADMIN_CLASS": "tasks_app.admin.clients.OAuthClientAdmin",
    **{
        f"{table}_ADMIN_CLASS": "tasks_app.oauth.hidden.HiddenAdmin"
        for table in ("ACCESS_TOKEN", "GRANT", "ID_TOKEN", "REFRESH_TOKEN")
    },
}
"""The options of django-oauth-toolkit. Those of RFC 9700 keep the clear text of tokens out of the database."""
