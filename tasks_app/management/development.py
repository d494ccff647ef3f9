"""The preparations of `run` and `runserver` on a development machine: an operator and an API key, if there are none.

Both commands refuse production settings. They never change a user, a password or a key that they did not create.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.key_form import random_key
from tasks_app.cards.addresses import LOOPBACK
from tasks_app.models import ApiKey
from tasks_app.operators.users import find_namesake

OPERATOR = "admin"
MIN_LENGTH, MIN_DISTINCT = 20, 8
"""Characters that a DEV_KEY must have, and different ones among them. The key gives all rights."""


def refuse_production(command: str) -> None:
    """Raise CommandError for production settings, because a production database must not get our operator and key."""
    if not settings.DEVELOPMENT or settings.CELERY_BROKER_URL:
        name = "CELERY_BROKER_URL" if settings.DEVELOPMENT else "SECRET_KEY"
        raise CommandError(
            f"{name} is set, which is for production. `{command}` is for development: it creates an operator and a key "
            f"and prints both. Use `manage.py serve` and `manage.py worker`, or unset {name}."
        )
    host = str(settings.DATABASES["default"].get("HOST") or "")
    if host and host not in LOOPBACK and not host.startswith("/"):
        raise CommandError(
            f"DATABASE_URL names a database on another machine, {host}. `{command}` is for development: it creates an "
            "operator and a key in the database. Set SECRET_KEY and use `manage.py serve`, or use a local database."
        )
    if settings.HOST not in LOOPBACK:
        raise CommandError(
            f"HOST={settings.HOST} would open this server to the network. `{command}` is for this machine only, "
            "because it prints a login. To serve others, set SECRET_KEY (a long random text) and ALLOWED_HOSTS, and "
            "use `manage.py serve`; see docs/operations.md."
        )


def prepare_login() -> str:
    """Return how to log in to the admin. Create an operator if there is no superuser; never change a password."""
    users = get_user_model().objects
    path = settings.DATA_DIR / "admin.password"
    user = users.filter(username=OPERATOR).first()
    if find_namesake(OPERATOR) is None and not users.filter(is_superuser=True, is_active=True).exists():
        password = read_or_create(path, lambda: secrets.token_urlsafe(12))
        users.create_superuser(OPERATOR, password=password)
        return f"login {OPERATOR}   password {password}"
    if user is not None and path.exists() and user.check_password(password := _read(path)):
        return f"login {OPERATOR}   password {password}"
    if user is None:
        return "with your own login; `manage.py createsuperuser` creates one"
    return (
        f"with your own login; `manage.py changepassword {OPERATOR}` sets a password, `createsuperuser` creates another"
    )


def prepare_key() -> str:
    """Return a valid API key: DEV_KEY, or else the key in the data folder, which is replaced if it was revoked."""
    path = settings.DATA_DIR / "api.key"
    own = read_or_create(path, random_key)
    if not _store_key(own):
        path.unlink()
        own = read_or_create(path, random_key)
        _store_key(own)
    end_former_key()
    if not settings.DEV_KEY:
        return own
    if weakness := find_weakness(settings.DEV_KEY):
        raise CommandError(f"DEV_KEY {weakness}: it gives all rights, so it must be hard to guess.")
    if not _store_key(settings.DEV_KEY):
        raise CommandError("DEV_KEY is a key that was revoked or has expired: choose another.")
    return str(settings.DEV_KEY)


def end_former_key() -> None:
    """End the DEV_KEY of an earlier start of this data folder, unless it is still the same."""
    path = settings.DATA_DIR / "dev_key.digest"
    former = _read(path) if path.exists() else ""
    present = access.digests(settings.DEV_KEY)[0] if settings.DEV_KEY else ""
    if former == present:
        return
    access.development_keys().filter(digest=former, expires_at=None).update(expires_at=clock.now())
    path.unlink(missing_ok=True)
    if present:
        read_or_create(path, lambda: present)


def find_weakness(secret: str) -> str:
    """Return what makes a key unusable or easy to guess; empty if nothing does."""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        return "must consist of ASCII letters, digits and punctuation, without spaces"
    if len(secret) < MIN_LENGTH:
        return f"must have at least {MIN_LENGTH} characters, not {len(secret)}"
    return "" if len(set(secret)) >= MIN_DISTINCT else f"must have at least {MIN_DISTINCT} different characters"


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file. The first call creates the file, readable by this account alone."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make())
    return _read(path)


def _store_key(secret: str) -> bool:
    """Store the key if it is new, and return whether it is valid. An equal key of another principal is not changed."""
    stored = ApiKey.objects.filter(digest__in=access.digests(secret)).first()
    if stored is None:
        access.new_key(access.DEVELOPER, name=access.DEVELOPMENT, key=secret)
        return True
    if stored.revoked_at:
        return False
    # `end_former_key` ended this DEV_KEY when it was unset. Now it is set again.
    if access.development_keys().filter(pk=stored.pk).update(expires_at=None):
        return True
    return stored.expires_at is None or stored.expires_at > clock.now()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()
