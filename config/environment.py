"""Typed readers of the environment for settings.py. An odd value stops the start with a sentence."""

import json
import os
import re
import secrets
import stat
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured


def read_env_file(path: Path) -> None:
    """Add what the file says to the environment of a development server; what is there already stays.

    Raises ImproperlyConfigured for a SECRET_KEY in it: a production has its settings from its environment.
    """
    if os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE") or not path.is_file():
        return
    from dotenv import dotenv_values

    found = dotenv_values(path)
    if any(found.get(name) for name in ("SECRET_KEY", "SECRET_KEY_FILE")):
        raise ImproperlyConfigured(
            f"{path}: SECRET_KEY is a setting of production, which does not read this file. Leave it out: a "
            "development server makes one up. Or set A2A_ENV_FILE= to read no file."
        )
    for name, value in found.items():
        plain = name.removesuffix("_FILE")
        if value is not None and not {plain, f"{plain}_FILE"} & os.environ.keys():
            os.environ[name] = value


def text(name: str, default: str = "") -> str:
    """Return the variable, or the contents of the file that NAME_FILE points to: secrets may come from a file."""
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error.strerror}") from None
    return os.environ.get(name, "").strip() or default


def given(name: str, default: str) -> str:
    """Return the variable where it is set, empty or not."""
    return os.environ.get(name, default).strip()


def number(name: str, default: float, minimum: float = 0, maximum: float = float("inf")) -> float:
    """Return a decimal number, finite, not below the minimum nor above the maximum."""
    value = text(name)
    try:
        found = float(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}") from None
    if not minimum <= found < float("inf"):
        raise ImproperlyConfigured(f"{name} must be at least {minimum:.15g}, not {value!r}")
    if found > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum:.15g}, not {value!r}")
    return found


def whole(name: str, default: int, minimum: int = 0, maximum: float = float("inf")) -> int:
    """Return a whole number, not below the minimum nor above the maximum."""
    found = number(name, default, minimum, maximum)
    if found % 1:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text(name)!r}")
    return int(found)


def flag(name: str, default: bool = False) -> bool:
    """Return true or false, in the usual spellings."""
    value = text(name).lower()
    if value not in {"", "1", "0", "true", "false", "yes", "no", "on", "off"}:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}")
    return value in {"1", "true", "yes", "on"} if value else default


def names(name: str, default: str = "") -> list[str]:
    """Return a list separated by commas."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def members(name: str) -> dict[str, Any]:
    """Return a JSON object."""
    try:
        found = json.loads(text(name, "{}"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ImproperlyConfigured(f'{name} must be a JSON object such as {{"location": "/data"}}')
    return found


def hosts(name: str) -> list[str]:
    """Return host names, addresses, and networks such as 10.1.0.0/16, separated by commas."""
    listed = names(name)
    for item in listed:
        try:
            ip_network(item)
        except ValueError:
            if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", item) or item.rpartition(".")[2].isdigit():
                raise ImproperlyConfigured(
                    f"{name}: {item!r} is neither a host name, nor an address, nor a network such as 10.1.0.0/16"
                ) from None
    return listed


def networks(name: str) -> list[str]:
    """Return addresses, and networks such as 10.1.0.0/16, separated by commas."""
    listed = names(name)
    for item in listed:
        try:
            ip_network(item)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: {item!r} is neither an IP address nor a network such as 10.1.0.0/16"
            ) from None
    return listed


def address(name: str, default: str) -> str:
    """Return an address or a name at which a server can listen."""
    value = text(name, default)
    try:
        value.encode("idna")
    except UnicodeError:
        raise ImproperlyConfigured(f"{name} must be an address or a name, such as 0.0.0.0, not {value!r}") from None
    return value


def level(name: str, default: str) -> str:
    """Return a level of logging."""
    value = text(name, default).upper()
    if value not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
        raise ImproperlyConfigured(f"{name} must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {value!r}")
    return value


def database(name: str, default: str) -> dict[str, Any]:
    """Return the address of a database, in Django's words."""
    scheme, colon, _ = text(name, default).partition("://")
    if scheme.lower() not in {"postgres", "postgresql", "pgsql", "sqlite"} or not colon:
        # What is no address at all may be a secret.
        raise ImproperlyConfigured(
            f"{name} must begin with postgres:// or sqlite:///" + (f", not {scheme[:20]!r}" if colon else "")
        )
    try:
        return dict(dj_database_url.parse(text(name, default), conn_max_age=None))
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must be like postgres://user:password@host:5432/name; in a password, / and # are %2F and %23"
        ) from None


OWN_FILES = ("admin.password", "api.key", "dev_key.", "files", "lock", "secret.key", "taskdesk.", "test.", "tests")
"""Beginnings of the names of all that is kept in DATA_DIR."""


def make_folder(folder: Path) -> Path:
    """Make the folder if need be, for this user alone: everything that was ever asked and answered is in it. One that
    was there before is closed to others if nothing but our files is in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR: cannot make the folder {folder}: {error.strerror}") from None
    with suppress(OSError):  # another user's folder stays as it is; of any that is open check a2a.W005 warns
        is_shared = folder.stat().st_mode & stat.S_ISVTX  # as /tmp is
        if not is_shared and all(path.name.startswith(OWN_FILES) for path in folder.iterdir()):
            keep_private(folder)
    return folder


def keep_private(path: Path) -> None:
    """Take the rights of everybody else away from a file or folder, where there are any."""
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            path.chmod(mode & 0o700)


def private_file(name: str) -> None:
    """Make the SQLite file before SQLite does, which would let others read it; its journals get the same rights."""
    if name.startswith((":", "file:")):
        return  # in memory, or an address
    path = Path(name)
    with suppress(OSError):  # the connection will say what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
    for suffix in ("", "-wal", "-shm"):
        keep_private(path.with_name(path.name + suffix))


def long_secret(name: str) -> str:
    """Return a secret of 32 characters at least, or nothing: a shorter one can be guessed."""
    value = text(name)
    if value and len(value) < 32:
        raise ImproperlyConfigured(f"{name} must have 32 characters at least, not {len(value)}")
    return value


def kept_secret(path: Path) -> str:
    """Return a secret of this data folder, made at first use, readable by its user alone."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with suppress(FileExistsError), os.fdopen(os.open(path, new, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR: cannot keep {path}: {error.strerror}") from None
