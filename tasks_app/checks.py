"""Misconfigurations that Django's check framework reports, with ids.

The lines that begin with an id in a check's docstring are its rows in docs/reference/checks.md.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004  # as Django names it
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages

from a2a import languages
from a2a.agents import registry
from a2a.language import Language
from a2a.requests import Request
from tasks_app.callers import access, schemes
from tasks_app.callers.scopes import Right
from tasks_app.cards import addresses
from tasks_app.slack.extra import INSTALL, find_problem


@register()
def check_sqlite(**_: Any) -> list[CheckMessage]:
    """Check the version of SQLite.

    a2a.E001: SQLite is older than 3.35, which has no RETURNING.
    """
    if not _sqlite() or sqlite3.sqlite_version_info >= (3, 35):
        return []
    hint = "Use a newer Python build, or PostgreSQL through DATABASE_URL."
    return [Error(f"SQLite {sqlite3.sqlite_version} has no RETURNING; 3.35 is needed.", hint=hint, id="a2a.E001")]


@register()
def check_file_storage(**_: Any) -> list[CheckMessage]:
    """Check the storage of files.

    a2a.E020: `A2A_FILE_STORAGE` with its options cannot be used.
    """
    try:
        storages["files"]
    except Exception as error:  # noqa: BLE001  # a storage that an operator chose may raise anything
        hint = "See A2A_FILE_STORAGE and A2A_FILE_STORAGE_OPTIONS."
        return [Error(f"The storage of files cannot be used: {error}", hint=hint, id="a2a.E020")]
    return []


@register()
def check_operations(**_: Any) -> list[CheckMessage]:
    """Check that each method of each language leads to an operation that declares the right of its callers.

    a2a.E040: a method has no operation in `OPERATIONS`, or the operation declares no right.
    """
    from tasks_app.operations import OPERATIONS  # loads all operations

    every = {request: name for language in languages.ALL.by_name.values() for name, request in _requests(language)}
    return [
        Error(
            f"The method {name} has no operation that declares a right, so no caller could be refused.",
            hint=f"Add {request.__name__} to OPERATIONS in tasks_app/operations/dispatcher.py, with its right.",
            id="a2a.E040",
        )
        for request, name in every.items()
        if request not in OPERATIONS or not isinstance(OPERATIONS[request].right, Right)
    ]


@register()
def check_default_agent(**_: Any) -> list[CheckMessage]:
    """Check that the default agent exists.

    a2a.E002: there is no agent `A2A_DEFAULT_AGENT`.
    """
    if registry.get(settings.A2A_DEFAULT_AGENT):
        return []
    hint = f"Set A2A_DEFAULT_AGENT to one of {', '.join(registry.names())}, or its module in A2A_AGENT_MODULES."
    return [Error(f"There is no agent {settings.A2A_DEFAULT_AGENT}.", hint=hint, id="a2a.E002")]


@register()
def check_schemes(**_: Any) -> list[CheckMessage]:
    """Check the schemes of authentication.

    a2a.E021: `A2A_SCHEMES` lists no scheme, or one that does not exist or cannot be used; or `A2A_ISSUERS` has issuers
    without the scheme `oidc`.
    """
    try:
        schemes.security()
    except (ImproperlyConfigured, ImportError) as error:
        return [Error(str(error), hint="See docs/identity.md.", id="a2a.E021")]
    if settings.A2A_ISSUERS and "oidc" not in settings.A2A_SCHEMES:
        hint = "Add oidc to A2A_SCHEMES, or remove A2A_ISSUERS."
        return [Error("A2A_ISSUERS has issuers whose tokens no scheme takes.", hint=hint, id="a2a.E021")]
    return []


@register()
def check_llm(**_: Any) -> list[CheckMessage]:
    """Check the settings of the agent `llm`.

    a2a.E003: only one of `LLM_BASE_URL` and `LLM_MODEL` is set, or an address or a key cannot be one.
    """
    from tasks_app.agents import llm  # imported late: every command imports this module, but few run its checks

    sentence = llm.find_problem()
    return [Error(sentence, hint="Without address and model there is no llm agent.", id="a2a.E003")] if sentence else []


@register()
def check_relays(**_: Any) -> list[CheckMessage]:
    """Check the addresses of relays.

    a2a.E013: an address of `A2A_RELAYS` may not be called.
    """
    if not settings.A2A_RELAYS:
        return []
    from tasks_app.outbound.dialling import Blocked, target  # loads the HTTP client

    messages: list[CheckMessage] = []
    for name, relay in settings.A2A_RELAYS.items():
        try:
            target(relay["url"])
        except Blocked as error:
            hint = (
                "A2A_OUTBOUND_HOSTS lists hosts that are not public; `manage.py a2a relays login` stores credentials."
            )
            messages.append(Error(f"A2A_RELAYS: the address of {name} {error}.", hint=hint, id="a2a.E013"))
    return messages


@register()
def check_slack(**_: Any) -> list[CheckMessage]:
    """Check the Slack front.

    a2a.W007: `A2A_SLACK` without the extra `slack`, so that `/slack/events` is not found.
    """
    problem = find_problem() if settings.A2A_SLACK else ""
    return [Warning(problem, hint=f"{INSTALL}, or set A2A_SLACK=false.", id="a2a.W007")] if problem else []


BROKERS = ("redis", "rediss", "amqp", "amqps")
HINTS = ("redis", "rediss", "unix")


@register()
def check_broker(**_: Any) -> list[CheckMessage]:
    """Check the broker.

    a2a.E004: `CELERY_BROKER_URL` is an address of another kind than Redis or AMQP.
    a2a.E005: SQLite with a broker. SQLite is for one process: workers cannot share it.
    """
    messages: list[CheckMessage] = []
    url = settings.CELERY_BROKER_URL
    if url and not _fits(url, BROKERS):
        hint = "Use redis://host:6379/0 or amqp://user:password@host//; in a password, / and # are %2F and %23."
        sentence = f"CELERY_BROKER_URL must be an address that begins with one of {_list_schemes(BROKERS)}."
        messages.append(Error(sentence, hint=hint, id="a2a.E004"))
    if url and _sqlite():
        hint = "Set DATABASE_URL to PostgreSQL, or unset CELERY_BROKER_URL: then the server runs agents itself."
        messages.append(Error("SQLite is for one process: workers cannot share it.", hint=hint, id="a2a.E005"))
    return messages


@register()
def check_hints(**_: Any) -> list[CheckMessage]:
    """Check what carries hints between processes.

    a2a.E006: `REDIS_URL` is not an address of Redis, or has an option that its client does not take.
    a2a.W001: Redis with SQLite, where there is only one process.
    a2a.W002: PostgreSQL without Redis. Streams of tasks that run in another process lag.
    """
    url = settings.REDIS_URL
    if url and not (_fits(url, HINTS) and _has_valid_options(url)):
        hint = "Use redis://host:6379/1; in a password, / and # are %2F and %23."
        sentence = f"REDIS_URL must be an address that begins with one of {_list_schemes(HINTS)}."
        return [Error(sentence, hint=hint, id="a2a.E006")]
    if url and _sqlite():
        hint = "Unset REDIS_URL, or set DATABASE_URL to PostgreSQL to run several processes."
        return [Warning("REDIS_URL joins processes, but on SQLite there is only one.", hint=hint, id="a2a.W001")]
    if not url and not _sqlite():
        lag = f"streams of tasks that run in another process lag up to {settings.A2A_POLL_SECONDS:g} s"
        hint = "Set REDIS_URL where several web processes or workers share the database."
        return [Warning(f"Without REDIS_URL {lag}.", hint=hint, id="a2a.W002")]
    return []


@register()
def check_secret(**_: Any) -> list[CheckMessage]:
    """Check that processes that share a database share a secret.

    a2a.W003: PostgreSQL without `SECRET_KEY`.
    """
    if not settings.DEVELOPMENT or _sqlite():
        return []
    hint = "Set SECRET_KEY, the same for all: without it API keys made with one data folder are unknown with another."
    return [Warning("Processes that share a database need one SECRET_KEY.", hint=hint, id="a2a.W003")]


@register()
def check_public_address(**_: Any) -> list[CheckMessage]:
    """Check that links in webhooks lead somewhere.

    a2a.W004: `SECRET_KEY` without `A2A_PUBLIC_URL`. Links to files in webhooks lead to `HOST` and `PORT`.
    """
    if settings.DEVELOPMENT or settings.A2A_PUBLIC_URL:
        return []
    hint = "Set A2A_PUBLIC_URL, such as https://agents.example.com, for all web processes and workers."
    return [Warning("Links to files in webhooks lead to HOST and PORT.", hint=hint, id="a2a.W004")]


@register()
def check_card_key(**_: Any) -> list[CheckMessage]:
    """Check the key that signs cards.

    a2a.E010: `A2A_CARD_KEY` cannot sign.
    """
    from a2a.signatures import UnusableKey
    from tasks_app.cards import public as cards

    try:
        cards.card_keys()
    except UnusableKey as error:
        hint = "`manage.py a2a cardkey` makes one; without any, cards are not signed."
        return [Error(f"A2A_CARD_KEY cannot sign cards: {error}.", hint=hint, id="a2a.E010")]
    return []


@register()
def check_card_addresses(**_: Any) -> list[CheckMessage]:
    """Check what is written on cards.

    a2a.E011: a setting that cannot be an address on a card, or a provider without its address, or an address
        without its provider.
    """
    names = ("A2A_PUBLIC_URL", "A2A_PROVIDER_URL", "A2A_DOCUMENTATION_URL", "A2A_ICON_URL")
    wrong = [name for name in names if (url := getattr(settings, name)) and not addresses.is_absolute(url)]
    if settings.A2A_PUBLIC_URL and "A2A_PUBLIC_URL" not in wrong and set("?#") & set(settings.A2A_PUBLIC_URL):
        wrong.append("A2A_PUBLIC_URL")
    sentences = [f"{name} must be like https://host, without a user or spaces" for name in wrong]
    if bool(settings.A2A_PROVIDER) is not bool(settings.A2A_PROVIDER_URL):
        sentences.append("A card names a provider by both A2A_PROVIDER and A2A_PROVIDER_URL, or not at all")
    return [Error(f"{sentence}.", hint="It is written on the agent cards.", id="a2a.E011") for sentence in sentences]


@register()
def check_default_card(**_: Any) -> list[CheckMessage]:
    """Check that there is a card at the root.

    a2a.E012: the default agent is not listed.
    """
    agent = registry.get(settings.A2A_DEFAULT_AGENT)
    if agent is None or agent.listed:
        return []
    hint = "Leave listed=False out, or choose another by A2A_DEFAULT_AGENT."
    sentence = f"The default agent {agent.name} is not listed: there is no card at the root."
    return [Error(sentence, hint=hint, id="a2a.E012")]


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


@register()
def check_data_folder(**_: Any) -> list[CheckMessage]:
    """Check the rights of the data folder.

    a2a.W005: other users of this machine can look into `DATA_DIR`.
    """
    mode = settings.DATA_DIR.stat().st_mode if settings.DATA_DIR.exists() else 0
    if not mode & 0o077:
        return []
    hint = f"chmod 700 {settings.DATA_DIR}, or set DATA_DIR to a folder of its own."
    return [Warning("Others of this machine can look into DATA_DIR.", hint=hint, id="a2a.W005")]


def is_guessable(secret: str) -> bool:
    """Return whether a secret is short, a placeholder, of few different characters, or one piece repeated."""
    repeated = (secret * 2).find(secret, 1) < len(secret)
    return len(secret) < 32 or len(set(secret)) < 10 or repeated or secret.startswith("django-insecure-")


def _requests(language: Language) -> Iterator[tuple[str, type[Request]]]:
    return ((name, method.request) for name, method in language.methods.items())


def _sqlite() -> bool:
    return str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3")


def _fits(url: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        place = parts.path if parts.scheme == "unix" else parts.hostname
        # A slash in a password ends the host early, and then the port is not a number: reading it raises ValueError.
        return parts.scheme in schemes and bool(place) and (parts.port or 1) > 0
    except ValueError:
        return False


def _has_valid_options(url: str) -> bool:
    """Return whether redis-py accepts every option in the URL."""
    import redis

    try:
        pool = redis.ConnectionPool.from_url(url)
        pool.connection_class(**pool.connection_kwargs)
    except (TypeError, ValueError, redis.RedisError):
        return False
    return True


def _list_schemes(schemes: tuple[str, ...]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)
