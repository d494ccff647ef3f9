"""Secrets in names and texts: which names have secrets for values, and which texts are secrets wherever they stand.

Every search here is linear in the length of the text: an unbounded repetition is possessive, and begins at a place that
no other match can begin inside of.
"""

import logging
import re
from functools import lru_cache

MASK = "[redacted]"
LONGEST_NAME = 96
"""Characters of a name that are looked at, from its end."""
TRACE_CHARACTERS = 65_536
"""Characters that are kept of a traceback, or of a line of the log: its beginning and its end."""

# -------------------------------------------------------------------- names

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The words of camelCase, snake_case and kebab-case; digits belong to none."""
_TRAILING = frozenset(
    {
        "again",
        "b",
        "base",
        "confirm",
        "confirmation",
        "hash",
        "header",
        "hex",
        "pem",
        "plain",
        "repeat",
        "text",
        "value",
    }
)
"""Words behind the one that says what a value is: passwordConfirmation, private_key_pem."""
_ENDINGS = (
    "token", "secret", "secrets", "password", "passwords", "passwd", "passwds", "passphrase", "passcode", "pwd",
    "credential", "credentials", "authorization", "cookie", "cookies", "jwt", "apikey", "apikeys", "accesskey",
    "authkey", "encryptionkey", "masterkey", "privatekey", "secretkey", "sessionkey", "sharedkey", "signingkey",
)  # fmt: skip
"""Ends of a last word, for names that are written in one: accesstoken, dbpassword."""
_WORDS = frozenset({"auth", "authentication", "otp"})
"""Last words that mean a secret only as whole words."""
_NO_TOKEN = frozenset(
    {
        *("bos", "cached", "completion", "continuation", "cursor", "eos", "input", "max", "min", "next", "output"),
        *("pad", "page", "prompt", "reasoning", "special", "stop", "sync", "total", "unk", "used"),
    }
)
"""Words before `token` in the names of what pages a list, marks a text or counts its pieces."""
_NO_KEY = frozenset(
    {
        *(
            "attribute",
            "bucket",
            "cache",
            "candidate",
            "column",
            "composite",
            "dedup",
            "deduplication",
            "dict",
            "enter",
        ),
        *("event", "field", "file", "foreign", "group", "hash", "idempotency", "index", "issue", "item", "label"),
        *("lookup", "map", "member", "message", "metadata", "natural", "object", "order", "parent", "partition"),
        *("primary", "project", "property", "public", "range", "record", "registry", "resource", "routing", "row"),
        *("search", "shard", "sort", "state", "storage", "surrogate", "tag", "task", "translation", "unique"),
    }
)
"""Words before `key` in the names of what tells rows, members and messages apart. A key of another kind is a secret."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether members of this name have secrets for values, by the end of the name in any case style."""
    words = [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:])]
    while len(words) > 1 and words[-1] in _TRAILING:
        words.pop()
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in {"key", "keys"}:
        return before not in _NO_KEY and bool(before)
    if last in {"token", "tokens"}:
        return before not in _NO_TOKEN
    return last in _WORDS or (last.endswith(_ENDINGS) and not last.endswith(("pagetoken", "nexttoken")))


def is_secret(name: str, value: object) -> bool:
    """Return whether the value of a member is to be masked. A number under `key` or `tokens` is a count; how a caller
    proves who they are may be an object, whose own members are looked at."""
    if value is None or isinstance(value, bool) or not is_secret_name(name):
        return False
    end = name.lower().rstrip("_-0123456789")
    if isinstance(value, int | float):
        return not end.endswith(("key", "keys", "tokens"))
    return isinstance(value, str) or not end.endswith(("auth", "authentication", "keys"))


# ------------------------------------------------------------------- values

_VALUES = (
    r"eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]++",  # a JWT (RFC 7519)
    r"tdk_[\w-]{16,}+",
    r"whsec_[A-Za-z0-9+/=]{16,}+",
    r"sk-[\w-]{16,}+",
    r"[rs]k_(?:live|test)_\w{16,}+",
    r"gh[oprsu]_[A-Za-z0-9]{20,}+",
    r"github_pat_\w{20,}+",
    r"glpat-[\w-]{16,}+",
    r"xox[a-z]-[\w-]{10,}+",
    r"A(?:KIA|SIA)[A-Z0-9]{16}(?![\w-])",
    r"AIza[\w-]{30,}+",
)
_BEARER = r"(?i:bearer)[ \t]{1,9}(?:[\w.~+/=-]{24,}+|(?=[A-Za-z_.~+/=-]{0,23}[0-9])[\w.~+/=-]{8,}+)"
"""A word after `Bearer` that is none of a language: it has a digit, or 24 characters."""
_KEY_BLOCK = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----[^-]*+(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----)?"
_USER = r"(?<=://)[^\s/?#\"]+(?=@)"
_BY_VALUE = re.compile(rf"(?<![\w-])(?:{'|'.join(_VALUES)}|{_BEARER})|{_KEY_BLOCK}|{_USER}")
# Possessive, and the name is looked at apart: to try all names at all places of a long text takes the time of others.
_IN_QUERY = re.compile(r"[?&]([\w-]{1,96}+)=(?=[^&#\s\"])")
_QUERY_VALUE = re.compile(r"[^&#\s\"]*+")
_QUERY_NAMES = frozenset({"key", "sig", "signature"})
"""Last words of the names of secrets in a query, besides those that are secrets anywhere."""


def masked_values(text: str) -> str:
    """Return the text without what is a secret wherever it stands: keys, and what a URL says of its user and in its
    query."""
    return _query_masked(_BY_VALUE.sub(MASK, text))


_ORDINARY_ID = re.compile(r"(?:ctx-)?[0-9a-f]{8}-[0-9a-f-]{27}")
SHORTEST = 16
"""Characters that every secret by value has at least, whatever stands around it."""


def masked_id(text: str) -> str:
    """Return an id that a caller chose without what is a secret by value; most are UUIDs, or short."""
    return text if len(text) < SHORTEST or _ORDINARY_ID.fullmatch(text) else masked_values(text)


def _query_masked(text: str) -> str:
    """Without the values of secret names in queries; a query may stand in the value of another."""
    parts, place = [], 0
    for found in _IN_QUERY.finditer(text):
        if found.start() >= place and _is_secret_in_query(found[1]):
            parts += [text[place : found.end()], MASK]
            value = _QUERY_VALUE.match(text, found.end())
            place = value.end() if value else found.end()
    return "".join(parts) + text[place:] if parts else text


@lru_cache(maxsize=4096)
def _is_secret_in_query(name: str) -> bool:
    words = _WORD.findall(name)
    return is_secret_name(name) or (bool(words) and words[-1].lower() in _QUERY_NAMES)


# -------------------------------------------------------------------- texts

_ASSIGNED = re.compile(r"(?<![\w-])([\w-]{1,96}+)([\"']?[ \t]{0,9}[:=][ \t]{0,9})(?=[^\s=])")
_SCHEME = r"(?:(?i:basic|bearer|digest|token|apikey)[ \t]{1,9})?+"
_ASSIGNED_VALUE = re.compile(rf"{_SCHEME}(?:\"[^\"\n]*+\"?|'[^'\n]*+'?|[^\s,;&(){{}}\[\]\"']++)")


def masked_text(text: str) -> str:
    """Return a text that people read, a traceback or a line of the log, without secrets: by value, and what follows a
    secret name and a colon or an equals sign."""
    parts, place = [], 0
    for found in _ASSIGNED.finditer(text):
        if found.start() >= place and is_secret_name(found[1]):
            value = _ASSIGNED_VALUE.match(text, found.end())
            if value:
                parts += [text[place : found.end()], MASK]
                place = value.end()
    return masked_values("".join(parts) + text[place:] if parts else text)


def masked_trace(text: str) -> str:
    """Return a traceback without secrets; of a very long one its beginning and its end."""
    if len(text) > TRACE_CHARACTERS:
        half = TRACE_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return masked_text(text)


def site(url: str) -> str:
    """Return the scheme and the host of an address: its path and its query may be secrets of its receiver."""
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    more = "/…" if rest.removeprefix(host) not in {"", "/"} else rest.removeprefix(host)
    return f"{scheme}://{host.rpartition('@')[2]}{more}" if rest else MASK


class Line(logging.Formatter):
    """A line of the log, with its traceback, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole line."""
        return masked_trace(super().format(record))
