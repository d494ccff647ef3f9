"""Typed readers of the environment, for the sections of settings.

For a value that it cannot use, a reader raises ImproperlyConfigured with a sentence that names the variable.
"""

import json
import os
import re
from difflib import get_close_matches
from io import StringIO
from ipaddress import ip_address, ip_network
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

_read: set[str] = set()
"""The variables that were asked for."""


def read_env_file(path: Path) -> None:
    """Add the variables of the file to the environment of a development server. Variables already set win.

    Raises ImproperlyConfigured for a file that A2A_ENV_FILE names and that is not there, for a line that is no setting,
    and for a SECRET_KEY: production takes its settings from the environment only.
    """
    if os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE"):
        return
    is_named = bool(os.environ.get("A2A_ENV_FILE"))
    if is_named and not path.exists():
        raise ImproperlyConfigured(f"A2A_ENV_FILE: there is no file {path}. Set A2A_ENV_FILE= to read none.")
    if not (is_named or path.is_file()):
        return
    from dotenv import dotenv_values

    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{path}: cannot read the settings: {error}") from None
    _check_lines(path, content)
    variables = dotenv_values(stream=StringIO(content))
    if any(variables.get(name) for name in ("SECRET_KEY", "SECRET_KEY_FILE")):
        raise ImproperlyConfigured(
            f"{path}: SECRET_KEY is a setting of production, which does not read this file. Leave it out: a "
            "development server makes its own. Or set A2A_ENV_FILE= to read no file."
        )
    for name, value in variables.items():
        plain = name.removesuffix("_FILE")
        if value is not None and not {plain, f"{plain}_FILE"} & os.environ.keys():
            os.environ[name] = value


def _check_lines(path: Path, content: str) -> None:
    """Raise ImproperlyConfigured for a line that is no setting. The message leaves it out, as it may be a secret."""
    from dotenv.parser import parse_stream

    for binding in parse_stream(StringIO(content)):
        if binding.error or (binding.key and binding.value is None):
            source = binding.original.string
            line = binding.original.line + source[: len(source) - len(source.lstrip())].count("\n")
            raise ImproperlyConfigured(f"{path}:{line}: a line of settings must be like NAME=value")


def text(name: str, default: str = "") -> str:
    """Return the variable, or the contents of the file that NAME_FILE names, so that secrets can come from files."""
    _read.add(name)
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE: cannot read {path}: {error.strerror}") from None
    return os.environ.get(name, "").strip() or default


def path(name: str, default: str) -> str:
    """Return an absolute path, as `folder` does. A variable that is set but empty stays empty: no path."""
    _read.add(name)
    return _fixed(name, os.environ.get(name, default).strip())


def folder(name: str, default: str = "") -> str:
    """Return the absolute path of a folder; empty for none.

    Code that changes the working directory of the process must not move the folder. Processes that start later, such as
    the fork server, read the variable in the other directory, so it is made absolute as well.
    """
    return _fixed(name, text(name, default))


def _fixed(name: str, value: str) -> str:
    """Return a path as an absolute one, also for processes that start later."""
    place = Path(value).expanduser().absolute()
    fixed = str(place.resolve() if ".." in place.parts else place) if value else ""
    if name in os.environ:
        os.environ[name] = fixed
    return fixed


def number(name: str, default: float, minimum: float = 0, maximum: float = float("inf")) -> float:
    """Return a finite decimal number between the minimum and the maximum."""
    value = text(name)
    try:
        result = float(value) if value else default
        if not isfinite(result):
            raise ValueError
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}") from None
    if result < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum:.15g}, not {value!r}")
    if result > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum:.15g}, not {value!r}")
    return result


def whole(name: str, default: int, minimum: int = 0, maximum: float = float("inf")) -> int:
    """Return a whole number between the minimum and the maximum."""
    result = number(name, default, minimum, maximum)
    if result % 1:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text(name)!r}")
    return int(result)


def flag(name: str, default: bool = False) -> bool:
    """Return true or false, in the usual spellings."""
    value = text(name).lower()
    if value not in {"", "1", "0", "true", "false", "yes", "no", "on", "off"}:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}")
    return value in {"1", "true", "yes", "on"} if value else default


def names(name: str, default: str = "") -> list[str]:
    """Return the items of a list separated by commas."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def choice(name: str, values: tuple[str, ...]) -> str:
    """Return one of the values, in their spelling; the first by default."""
    value = text(name, values[0])
    for one in values:
        if one.lower() == value.lower():
            return one
    raise ImproperlyConfigured(f"{name} must be one of {', '.join(values)}, not {value!r}")


def members(name: str, *, example: str = '{"location": "/data"}') -> dict[str, Any]:
    """Return a JSON object."""
    try:
        value = json.loads(text(name, "{}"))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object such as {example}")
    return value


def hosts(name: str) -> list[str]:
    """Return host names, addresses, and networks such as 10.1.0.0/16, separated by commas."""
    items = names(name)
    for item in items:
        try:
            ip_network(item)
        except ValueError:
            if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", item) or item.rpartition(".")[2].isdigit():
                raise ImproperlyConfigured(
                    f"{name}: {item!r} is neither a host name, nor an address, nor a network such as 10.1.0.0/16"
                ) from None
    return items


def networks(name: str) -> list[str]:
    """Return addresses, and networks such as 10.1.0.0/16, separated by commas."""
    items = names(name)
    for item in items:
        try:
            ip_network(item)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: {item!r} is neither an IP address nor a network such as 10.1.0.0/16"
            ) from None
    return items


def costs(name: str) -> dict[str, int]:
    """Return whole numbers by name: SendMessage=10,GetTask=1."""
    result: dict[str, int] = {}
    for item in names(name):
        word, _, value = item.partition("=")
        if not (word.strip().isalpha() and value.strip().isdecimal()):
            raise ImproperlyConfigured(f"{name}: {item!r} is not like SendMessage=10, a name and a whole number")
        result[word.strip()] = int(value)
    return result


_RELAY = re.compile(r"(?P<name>[a-z][a-z0-9-]{0,63})=(?P<url>https?://\S+)(?P<options>(?: +[a-z]+=\S+)*)")


def relays(name: str) -> dict[str, dict[str, Any]]:
    """Return remote agents by name: name=https://host/agent, each with options after spaces, separated by commas."""
    result: dict[str, dict[str, Any]] = {}
    for item in names(name):
        match = _RELAY.fullmatch(item)
        if match is None:
            # What is not an address may be a secret in the wrong variable, so the message does not repeat it.
            raise ImproperlyConfigured(
                f"{name}: each item is like weather=https://host/agents/weather timeout=600, separated by commas; "
                "a name has lower-case letters, digits and hyphens"
            )
        if match["name"] in result:
            raise ImproperlyConfigured(f"{name}: there are two relays named {match['name']}")
        result[match["name"]] = {"url": match["url"]} | _relay_options(name, match["name"], match["options"])
    return result


def _relay_options(name: str, relay: str, words: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for word in words.split():
        option, _, value = word.partition("=")
        if option == "timeout" and value.isascii() and value.isdigit() and 0 < int(value) <= 31_536_000:
            options[option] = float(value)
        elif option == "attempts" and value.isascii() and value.isdigit() and 1 <= int(value) <= 100:
            options[option] = int(value)
        elif option == "resend" and value in {"yes", "no"}:
            options[option] = value == "yes"
        else:
            raise ImproperlyConfigured(
                f"{name}: {relay} has an invalid option: there are timeout= (whole seconds, a year at most), "
                "attempts= (1 to 100), and resend= (yes or no)"
            )
    return options


def origins(name: str) -> list[str]:
    """Return origins of pages in browsers, such as https://app.example (RFC 6454, 6.2), or `*` alone for all."""
    items = names(name)
    for item in items:
        if item == "*" and len(items) > 1:
            raise ImproperlyConfigured(f"{name}: * is all origins, so it must be the only one")
        if item not in {"*", origin := _origin_of(item)}:
            raise ImproperlyConfigured(
                f"{name}: {item!r} is not an origin: write scheme, host and port as browsers do, "
                f"{origin or 'https://app.example'}"
            )
    return items


_DEFAULT_PORTS = {"http": 80, "https": 443}


def _origin_of(url: str) -> str:
    """Return the origin of a URL as browsers write it; empty if it has none."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
        host = f"[{ip_address(host)}]" if ":" in host else host
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not re.fullmatch(r"[a-z0-9._-]+|\[.*\]", host):
        return ""
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in {None, _DEFAULT_PORTS[parts.scheme]} else "")


def address(name: str, default: str) -> str:
    """Return an address or a host name at which a server can listen."""
    value = text(name, default)
    try:
        value.encode("idna")
    except UnicodeError:
        raise ImproperlyConfigured(f"{name} must be an address or a name, such as 0.0.0.0, not {value!r}") from None
    return value


def level(name: str, default: str) -> str:
    """Return the name of a logging level."""
    value = text(name, default).upper()
    if value not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
        raise ImproperlyConfigured(f"{name} must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {value!r}")
    return value


def database(name: str, default: str) -> dict[str, Any]:
    """Return the database at an address, as an entry of Django's DATABASES. The path of a file is made absolute."""
    scheme, colon, _ = text(name, default).partition("://")
    if scheme.lower() not in {"postgres", "postgresql", "pgsql", "sqlite"} or not colon:
        # Text that is not an address may be a secret in the wrong variable, so the message does not repeat it.
        raise ImproperlyConfigured(
            f"{name} must begin with postgres:// or sqlite:///" + (f", not {scheme[:20]!r}" if colon else "")
        )
    try:
        entry: dict[str, Any] = dict(dj_database_url.parse(text(name, default), conn_max_age=None))
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must be like postgres://user:password@host:5432/name; in a password, / and # are %2F and %23"
        ) from None
    if scheme.lower() == "sqlite" and not entry["NAME"].startswith((":", "file:")):
        entry["NAME"] = str(Path(entry["NAME"]).absolute())  # An agent may change the working directory.
    return entry


def long_secret(name: str) -> str:
    """Return a secret of at least 32 characters, or an empty text. A shorter secret could be guessed."""
    value = text(name)
    if value and len(value) < 32:
        raise ImproperlyConfigured(f"{name} must have 32 characters at least, not {len(value)}")
    return value


def execution(name: str) -> str:
    """Return the place of the execution zone: an address of HTTP, `in-process`, `queue`, or `agentcore:ARN`."""
    value = text(name)
    is_address = urlsplit(value).scheme in {"http", "https"} and bool(urlsplit(value).hostname)
    is_runtime = re.fullmatch(r"agentcore:arn:[^\s:]+:bedrock-agentcore:[^\s:]+:[^\s:]*:\S+", value) is not None
    if value and value not in {"in-process", "queue"} and not (is_address or is_runtime):
        raise ImproperlyConfigured(
            f"{name} must be an address such as https://host, in-process, queue, or agentcore: with the ARN of a "
            f"runtime, not {value!r}"
        )
    return value.rstrip("/") if is_address else value


def find_misspellings() -> dict[str, str]:
    """Return the variables that begin like ours and that nothing has read, each with the setting that it resembles.

    Others that nothing has read may belong to agents.
    """
    pairs: dict[str, str] = {}
    for variable in sorted(os.environ):
        name = variable.removesuffix("_FILE")
        if name.startswith("A2A_") and name not in _read and (like := get_close_matches(name, _read, 1, cutoff=0.8)):
            pairs[variable] = like[0]
    return pairs
