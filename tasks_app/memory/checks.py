"""The checks of requests about the memory, before the database is asked: names, times and the size of a page."""

from a2a.errors import InvalidParams
from a2a.memory import DeleteMemory, ListMemory, RetrieveMemory, SearchMemory, StoreMemory

NAMESPACE, KEY, TEXT = 128, 255, 200
"""Characters of a namespace, of a key, and of the conditions of a search."""
MAX_PAGE = 100
MAX_TTL = 10 * 366 * 86_400
"""Seconds of the longest ttl: ten years."""
MAX_VERSION = 2**53
DEPTH = 10
"""Names on the way to a field."""

MemoryRequest = StoreMemory | RetrieveMemory | DeleteMemory | ListMemory | SearchMemory


def check_request(request: MemoryRequest) -> None:
    """Check a request about the memory. Raises InvalidParams."""
    if request.namespace is not None:
        _check_name("namespace", request.namespace, NAMESPACE)
    match request:
        case StoreMemory(key=key, ttl=ttl):
            _check_name("key", key, KEY)
            if ttl is not None and not 0 < ttl <= MAX_TTL:
                raise InvalidParams(("ttl", f"must be a number of seconds above 0, and {MAX_TTL} at most"))
        case RetrieveMemory(key=key) | DeleteMemory(key=key):
            _check_name("key", key, KEY)
        case ListMemory(prefix=prefix):
            _check_text("prefix", prefix, KEY)
        case SearchMemory():
            _check_search(request)
    if isinstance(request, StoreMemory | DeleteMemory) and not 0 <= (request.if_version or 0) <= MAX_VERSION:
        raise InvalidParams(("ifVersion", f"must be a whole number from 0 to {MAX_VERSION}"))
    if isinstance(request, ListMemory | SearchMemory) and not 1 <= request.page_size <= MAX_PAGE:
        raise InvalidParams(("limit", f"must be from 1 to {MAX_PAGE}"))


def _check_search(request: SearchMemory) -> None:
    if not request.text and not request.field:
        raise InvalidParams(("text", "is required, unless field names a member of the data"))
    _check_text("text", request.text, TEXT)
    _check_text("field", request.field, TEXT)
    if isinstance(request.value, str):
        _check_text("value", request.value, TEXT)
    if request.field and (any(letter in request.field for letter in '"\\') or request.field.count(".") >= DEPTH):
        raise InvalidParams(("field", f"must be {DEPTH} names at most, joined by dots, without quotes and backslashes"))


def _check_name(field: str, name: str, most: int) -> None:
    if not name:
        raise InvalidParams((field, "must be a non-empty string"))
    _check_text(field, name, most)


def _check_text(field: str, text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidParams((field, f"must have {most} characters at most"))
    if "\0" in text:
        raise InvalidParams((field, "must not have the character U+0000"))
