"""The challenge of a refusal, in WWW-Authenticate: what a caller must send, and where it gets that."""

import re
from collections.abc import Mapping

from tasks_app.callers.schemes import schemes
from tasks_app.oauth.resources import document_of

REALM = "taskdesk"
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""The characters of a scope (RFC 6749, 3.3), which need no escape in a quoted string."""


def challenge(path: str, error: str = "", scope: str = "") -> str:
    """Return the value of WWW-Authenticate for a request to a path.

    `error` is the code of the error for bearer tokens (RFC 6750, 3.1), and `scope` the scope that a token needs; one
    with other characters than scopes may have is left out.

    Schemes with the same auth-scheme share one challenge.
    """
    challenges: dict[str, dict[str, str]] = {}
    for scheme in schemes():
        if scheme.challenge:
            parameters = challenges.setdefault(scheme.challenge, {"realm": REALM})
            if scheme.has_issuer:
                parameters["resource_metadata"] = document_of(path)  # RFC 9728, 5.1
    if not challenges:
        challenges = {scheme.substitute: {"realm": REALM} for scheme in schemes()}
    if error and "Bearer" in challenges:
        challenges["Bearer"] |= {"error": error} | ({"scope": scope} if _SCOPE.fullmatch(scope) else {})
    return ", ".join(f"{name} {_join(parameters)}" for name, parameters in challenges.items())


def _join(parameters: Mapping[str, str]) -> str:
    return ", ".join(f'{name}="{value}"' for name, value in parameters.items())
