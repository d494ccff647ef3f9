"""The servers of a development machine: they refuse the settings of production, and make an operator and an
API key where there are none. A user, a password or a key that they did not make stays as it is."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from tasks_app import clock
from tasks_app.callers import access
from tasks_app.cards.addresses import LOOPBACK
from tasks_app.models import ApiKey

OPERATOR = "admin"
SHORTEST, FEWEST = 20, 8
"""Characters of a DEV_KEY, and different ones among them: it may do everything."""


def refuse_production(command: str) -> None:
    """Raise CommandError for settings of a production, whose database must get neither our operator nor our key."""
    if not settings.DEVELOPMENT or settings.CELERY_BROKER_URL:
        name = "CELERY_BROKER_URL" if settings.DEVELOPMENT else "SECRET_KEY"
        raise CommandError(
            f"{name} is a setting of production, and `{command}` is for development: it makes an operator and a key, "
            "and prints both. Use `manage.py serve` and `manage.py worker`, or unset it."
        )
    host = str(settings.DATABASES["default"].get("HOST") or "")
    if host and host not in LOOPBACK and not host.startswith("/"):
        raise CommandError(
            f"DATABASE_URL leads to another machine, {host}, and `{command}` is for development: it makes an operator "
            "and a key in the database. Set SECRET_KEY and use `manage.py serve`, or use a database of this machine."
        )
    if settings.HOST not in LOOPBACK:
        raise CommandError(
            f"HOST={settings.HOST}: `{command}` is for this machine only, with a login that it prints. To serve "
            "others, set SECRET_KEY (a long random text) and ALLOWED_HOSTS, and use `manage.py serve`; see the README."
        )


def login() -> str:
    """Return how to log in to the admin. An operator is made where no user is one; a password is never changed."""
    users = get_user_model().objects
    path = settings.DATA_DIR / "admin.password"
    user = users.filter(username=OPERATOR).first()
    if user is None and not users.filter(is_superuser=True, is_active=True).exists():
        password = kept(path, lambda: secrets.token_urlsafe(12))
        users.create_superuser(OPERATOR, password=password)
        return f"login {OPERATOR}   password {password}"
    if user is not None and path.exists() and user.check_password(password := _read(path)):
        return f"login {OPERATOR}   password {password}"
    return "with your own login; `manage.py createsuperuser` makes one"


def key() -> str:
    """Return a key that may call: DEV_KEY, or the one of the data folder, which is made anew when it was revoked."""
    path = settings.DATA_DIR / "api.key"
    own = kept(path, _random_key)
    if not _accept(own):
        path.unlink()
        own = kept(path, _random_key)
        _accept(own)
    end_former_key()
    if not settings.DEV_KEY:
        return own
    if wrong := weakness(settings.DEV_KEY):
        raise CommandError(f"DEV_KEY {wrong}: a guess of it opens everything.")
    if not _accept(settings.DEV_KEY):
        raise CommandError("DEV_KEY is a key that was revoked or has expired: choose another.")
    return str(settings.DEV_KEY)


def end_former_key() -> None:
    """End the DEV_KEY of a former start of this data folder if it is not the present one."""
    path = settings.DATA_DIR / "dev_key.digest"
    former = _read(path) if path.exists() else ""
    present = access.digests(settings.DEV_KEY)[0] if settings.DEV_KEY else ""
    if former == present:
        return
    access.development_keys().filter(digest=former, expires_at=None).update(expires_at=clock.now())
    path.unlink(missing_ok=True)
    if present:
        kept(path, lambda: present)


def weakness(secret: str) -> str:
    """Return what is wrong with a key that a person chose; empty if nothing is."""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        return "must be of ASCII letters, digits and signs, without spaces"
    if len(secret) < SHORTEST:
        return f"must have {SHORTEST} characters at least, not {len(secret)}"
    return "" if len(set(secret)) >= FEWEST else f"must have {FEWEST} different characters at least"


def kept(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file, made at first use, readable by this user alone."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(make())
    return _read(path)


def _accept(secret: str) -> bool:
    """Store the key if it is new; return whether it may call. Another's key that is the same stays as it is."""
    stored = ApiKey.objects.filter(digest__in=access.digests(secret)).first()
    if stored is None:
        access.new_key(access.DEVELOPER, name=access.DEVELOPMENT, key=secret)
        return True
    if stored.revoked_at:
        return False
    # A DEV_KEY that was unset had an end, and is set again.
    if access.development_keys().filter(pk=stored.pk).update(expires_at=None):
        return True
    return stored.expires_at is None or stored.expires_at > clock.now()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip()


def _random_key() -> str:
    return access.PREFIX + secrets.token_urlsafe(32)
