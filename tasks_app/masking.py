"""Secrets in names and texts: names whose values are secrets, and texts that are secrets anywhere.

Callers choose these texts, so every search is linear in their length: an unbounded repetition is possessive, and no
other match can begin inside of it.
"""

import logging
import re
from collections.abc import Iterator
from functools import lru_cache

MASK = "[redacted]"
MAX_NAME = 96
"""Characters of a name that are examined, from its end."""
TRACE_CHARACTERS = 65_536
"""Characters of a traceback, or of a line of the log, that are kept: half at its beginning, half at its end."""

# -------------------------------------------------------------------- names

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The words of a name in camelCase, snake_case or kebab-case. Digits separate words."""
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
"""Last words that are ignored, so that the one before them decides: passwordConfirmation, private_key_pem."""
_ENDINGS = (
    *("token", "secret", "secrets", "password", "passwords", "passwd", "passwds", "passphrase", "passcode", "pwd"),
    *("credential", "credentials", "authorization", "cookie", "cookies", "jwt", "apikey", "apikeys", "accesskey"),
    *("authkey", "encryptionkey", "masterkey", "privatekey", "secretkey", "sessionkey", "sharedkey", "signingkey"),
)
"""Endings of a last word, for names without separators: accesstoken, dbpassword."""
_WORDS = frozenset({"auth", "authentication", "otp"})
"""Last words that mean a secret as whole words only."""
_NO_TOKEN = frozenset(
    {
        *("bos", "cached", "completion", "continuation", "cursor", "eos", "input", "max", "min", "next", "output"),
        *("pad", "page", "prompt", "reasoning", "special", "stop", "sync", "total", "unk", "used"),
    }
)
"""Words before `token` in names that are not secret: tokens of paging, of language models, and counts of them."""
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
"""Words before `key` in names that are not secret, such as keys of rows and messages. Any other key is a secret."""


def is_secret_name(name: str) -> bool:
    """Return whether members of this name have secrets for values. The end of the name decides, in any case style."""
    # Callers choose the names. The cache would keep thousands of them, each as long as a body.
    return _is_secret_end(name[-MAX_NAME:])


@lru_cache(maxsize=4096)
def _is_secret_end(end: str) -> bool:
    words = [word.lower() for word in _WORD.findall(end)]
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
    """Return whether the value of a member must be masked.

    A number under `key` or `tokens` is a count. An object under `auth`, `authentication` or `keys` is not masked as a
    whole: its own members are examined.
    """
    if value is None or isinstance(value, bool) or not is_secret_name(name):
        return False
    end = name.lower().rstrip("_-0123456789")
    if isinstance(value, int | float):
        return not end.endswith(("key", "keys", "tokens"))
    return isinstance(value, str) or not end.endswith(("auth", "authentication", "keys"))


# ------------------------------------------------------------------- values

_VALUES = (
    r"eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]++",  # a JWT (RFC 7519)
    r"td[akors]_[\w-]{16,}+",
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
"""A text after `Bearer` that is not a word of a language: it has a digit, or at least 24 characters."""
_KEY_BLOCK = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY-----[^-]*+(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY-----)?"
_BY_VALUE = re.compile(rf"(?<![\w-])(?:{'|'.join(_VALUES)}|{_BEARER})|{_KEY_BLOCK}")
WINDOW, OVERLAP = 16_384, 2_048
"""Characters that are searched at once, and of those the ones that are searched again with the next. Python runs no
other thread during a search. A secret is found wherever it is if its first OVERLAP characters show what it is. The user
in a URL is shown by the character after it, and is searched apart."""
_END_OF_USER = re.compile(r"[\s/?#\"]")
# The pattern matches any name, and code decides whether it is secret. A pattern with all secret names would be tried at
# every place of a long text, and delay other callers.
_IN_QUERY = re.compile(r"[?&]([\w-]{1,96}+)=(?=[^&#\s\"])")
_QUERY_VALUE = re.compile(r"[^&#\s\"]*+")
_QUERY_NAMES = frozenset({"key", "sig", "signature"})
"""Last words of names that are secret in a query, besides those that are secret anywhere."""


def mask_values(text: str) -> str:
    """Mask the parts of a text that are secrets anywhere: keys and tokens, and the user and secret query values of
    URLs."""
    parts, place = [], 0
    for match in _matches(_BY_VALUE, text):
        parts += [text[place : match.start()], MASK]
        place = match.end()
    return _mask_query(_mask_users("".join(parts) + text[place:] if parts else text))


def _mask_users(text: str) -> str:
    """Mask the users of URLs, with their passwords: what stands between `://` and the last `@` before a path."""
    parts, place = [], 0
    scheme = text.find("://")
    while scheme >= 0:
        start = scheme + 3
        end = _end_of_user(text, start)
        at = text.rfind("@", start, end)
        if at > start:
            parts += [text[place:start], MASK]
            place = at
        # No `://` begins before the slash that may be at the end.
        scheme = text.find("://", max(start, end - 1))
    return "".join(parts) + text[place:] if parts else text


def _end_of_user(text: str, start: int) -> int:
    for place in range(start, len(text), WINDOW):
        if match := _END_OF_USER.search(text, place, place + WINDOW):
            return match.start()
    return len(text)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern like finditer(), but search a long text window by window."""
    if len(text) <= WINDOW:
        yield from pattern.finditer(text)
        return
    place = 0
    while place < len(text):
        end = place + WINDOW
        match = pattern.search(text, place, end)
        if match is not None and match.end() > end - OVERLAP:
            # The end of the window may have cut it, or made it one.
            place = match.start()
            match = pattern.match(text, place)
            if match is None:
                place += 1
                continue
        if match is None:
            place = end - OVERLAP if end < len(text) else len(text)
        else:
            yield match
            place = max(match.end(), place + 1)


_ORDINARY_ID = re.compile(r"(?:ctx-)?[0-9a-f]{8}-[0-9a-f-]{27}")
SHORTEST = 16
"""Characters of the shortest text that can contain a secret of these kinds."""


def mask_id(text: str, most: int | None = None) -> str:
    """Mask secrets in an id that a caller chose, and cut it to `most` characters, the width of its column.

    It is cut after masking too, because a mask may be longer than the secret, and PostgreSQL refuses the row then. Most
    ids are short or UUIDs, and need no search.
    """
    text = text[:most]
    return text if len(text) < SHORTEST or _ORDINARY_ID.fullmatch(text) else mask_values(text)[:most]


def _mask_query(text: str) -> str:
    """Mask the values of secret names in queries. A query may contain another one in a value."""
    parts, place = [], 0
    for name in _matches(_IN_QUERY, text):
        if name.start() >= place and _is_secret_in_query(name[1]):
            parts += [text[place : name.end()], MASK]
            value = _QUERY_VALUE.match(text, name.end())
            place = value.end() if value else name.end()
    return "".join(parts) + text[place:] if parts else text


@lru_cache(maxsize=4096)
def _is_secret_in_query(name: str) -> bool:
    words = _WORD.findall(name)
    return is_secret_name(name) or (bool(words) and words[-1].lower() in _QUERY_NAMES)


# -------------------------------------------------------------------- texts

_ASSIGNED = re.compile(r"(?<![\w-])([\w-]{1,96}+)([\"']?[ \t]{0,9}[:=][ \t]{0,9})(?=[^\s=])")
_SCHEME = r"(?:(?i:basic|bearer|digest|token|apikey)[ \t]{1,9})?+"
_ASSIGNED_VALUE = re.compile(rf"{_SCHEME}(?:\"[^\"\n]*+\"?|'[^'\n]*+'?|[^\s,;&(){{}}\[\]\"']++)")


def mask_text(text: str) -> str:
    """Mask secrets in a text that people read, such as a traceback or a line of the log.

    Secrets are what `mask_values` masks, and the text after a secret name with a colon or an equals sign.
    """
    parts, place = [], 0
    for name in _ASSIGNED.finditer(text):
        if name.start() >= place and is_secret_name(name[1]):
            value = _ASSIGNED_VALUE.match(text, name.end())
            if value:
                parts += [text[place : name.end()], MASK]
                place = value.end()
    return mask_values("".join(parts) + text[place:] if parts else text)


def mask_trace(text: str) -> str:
    """Mask secrets in a traceback, and shorten a very long one to its beginning and its end."""
    if len(text) > TRACE_CHARACTERS:
        half = TRACE_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return mask_text(text)


def site(url: str) -> str:
    """Return the scheme and host of an address. Its path and query may be secrets of the receiver."""
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    more = "/…" if rest.removeprefix(host) not in {"", "/"} else rest.removeprefix(host)
    return f"{scheme}://{host.rpartition('@')[2]}{more}" if rest else MASK


class Line(logging.Formatter):
    """A formatter that masks secrets in lines of the log and in their tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line with its traceback, without secrets."""
        return mask_trace(super().format(record))
