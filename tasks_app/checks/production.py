"""Checks of a production: a server with `SECRET_KEY`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it

from tasks_app.callers import access
from tasks_app.cards import addresses


def _production(check: Callable[..., Iterator[CheckMessage]]) -> Callable[..., list[CheckMessage]]:
    """Return a check that runs in production only."""

    def checked(**options: Any) -> list[CheckMessage]:
        return [] if settings.DEVELOPMENT else list(check(**options))

    return checked


@register()
@_production
def check_debug(**_: Any) -> Iterator[CheckMessage]:
    """Check that debug pages are off in production.

    a2a.E030: `DEBUG` with `SECRET_KEY`. Its pages show settings and code to strangers.
    """
    if settings.DEBUG:
        hint = "Leave DEBUG out: its pages show settings and code to strangers."
        yield Error("DEBUG=true is for development, and SECRET_KEY makes this a production.", hint=hint, id="a2a.E030")


@register()
@_production
def check_hosts(**_: Any) -> Iterator[CheckMessage]:
    """Check the names of a production.

    a2a.E031: `ALLOWED_HOSTS=*` with `SECRET_KEY`. Callers could choose the address on our cards.
    """
    if "*" in settings.ALLOWED_HOSTS:
        hint = "List the names that it is reached by; .example.com stands for all below that domain."
        yield Error("ALLOWED_HOSTS=* lets callers choose the address on our cards.", hint=hint, id="a2a.E031")


@register()
@_production
def check_guessable(**_: Any) -> Iterator[CheckMessage]:
    """Check the secrets of a production.

    a2a.E032: a `SECRET_KEY`, or one of its fallbacks, that can be guessed.
    """
    secrets = {"SECRET_KEY": settings.SECRET_KEY}
    secrets |= {f"SECRET_KEY_FALLBACKS[{n}]": value for n, value in enumerate(settings.SECRET_KEY_FALLBACKS)}
    hint = "Use a random one: python -c 'import secrets; print(secrets.token_urlsafe(48))'"
    for name, value in secrets.items():
        if is_guessable(value):
            yield Error(f"{name} can be guessed, and with it every session and link.", hint=hint, id="a2a.E032")


@register()
@_production
def check_tls(**_: Any) -> Iterator[CheckMessage]:
    """Check that keys do not travel in clear.

    a2a.E033: `A2A_PUBLIC_URL` is http, with `SECRET_KEY`.
    """
    parts = urlsplit(settings.A2A_PUBLIC_URL)
    if parts.scheme == "http" and parts.hostname not in addresses.LOOPBACK:
        hint = "Put a proxy that speaks TLS in front, and name its https address."
        yield Error("A2A_PUBLIC_URL is http: keys and files would travel in clear.", hint=hint, id="a2a.E033")


@register("start", deploy=True)
@_production
def check_development_keys(databases: Sequence[str] | None = None, **_: Any) -> Iterator[CheckMessage]:
    """Check that no key of a development server works in production.

    a2a.E034: a key that `manage.py run` made, with `SECRET_KEY`. Only `serve`, `worker` and `check --deploy
        --database default` look for it, because other checks read no database.
    """
    if databases:
        for key in access.development_keys():
            sentence = f"The API key {key.pk}, which a development server made and printed, may do everything here."
            yield Error(sentence, hint=f"End it: manage.py a2a keys revoke {key.pk}", id="a2a.E034")


@register(deploy=True)
@_production
def check_second_factor(**_: Any) -> Iterator[CheckMessage]:
    """Check that operators give a second factor in production.

    a2a.W006: `A2A_SECOND_FACTOR=false` with `SECRET_KEY`. A guessed password opens the admin.
    """
    if not settings.A2A_SECOND_FACTOR:
        hint = "Leave A2A_SECOND_FACTOR out; `manage.py a2a users reset-second-factor` helps after a lost app."
        yield Warning("A2A_SECOND_FACTOR=false: a guessed password opens the admin.", hint=hint, id="a2a.W006")


@register(deploy=True)
@_production
def check_proxies(**_: Any) -> Iterator[CheckMessage]:
    """Check that only proxies can say how a call came.

    a2a.W010: `A2A_TRUST_FORWARDED` without `A2A_TRUSTED_PROXIES`, with `SECRET_KEY`. Any peer that reaches the server
        can say that its call came over TLS.
    """
    if settings.A2A_TRUST_FORWARDED and not settings.A2A_TRUSTED_PROXIES:
        hint = "Name the addresses of the proxy in A2A_TRUSTED_PROXIES."
        sentence = "A2A_TRUST_FORWARDED without A2A_TRUSTED_PROXIES: any peer can say that its call came over TLS."
        yield Warning(sentence, hint=hint, id="a2a.W010")


def is_guessable(secret: str) -> bool:
    """Return whether a secret is short, a placeholder, of few different characters, or one piece repeated."""
    repeated = (secret * 2).find(secret, 1) < len(secret)
    return len(secret) < 32 or len(set(secret)) < 10 or repeated or secret.startswith("django-insecure-")
