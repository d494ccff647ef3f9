"""One try: the headers, the POST, its answer. The body of an answer is neither kept nor shown."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime

import httpx
from msgspec.structs import replace
from standardwebhooks import Webhook

from a2a import languages
from a2a.dialects.webhook_fields import SIGNING_SCHEME
from a2a.files import MARK
from a2a.languages import push_of
from tasks_app.cards.addresses import public
from tasks_app.files import with_links
from tasks_app.outbound import policy
from tasks_app.sealing import Unreadable, unseal, url_of
from tasks_app.webhooks.agreement import REQUEST_ORIGIN, is_needed, sender_name
from tasks_app.webhooks.leases import DeliveryLease
from tasks_app.webhooks.schedule import TryResult

TRY_SECONDS = 10.0
READ_BYTES = 4_096
"""Bytes of the answer's body that are read, so that a receiver can finish a short answer without an error."""


def with_files(body: str, base: str | None = None) -> str:
    """Return the body with links to its files. Links expire, so each try makes new ones."""
    content = body.encode()
    if MARK not in content:
        return body
    return with_links(content, public() if base is None else base).decode()


def headers(lease: DeliveryLease, body: str, now: datetime) -> dict[str, str]:
    """Return the headers, with the id of the delivery and the signature of the body. Raises Unreadable."""
    push, _ = push_of(lease.language)
    secret = unseal(lease.secret)
    result = {
        "Content-Type": push.media,
        "User-Agent": "Taskdesk",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **languages.ALL.by_name[lease.language].headers(),
        "A2A-Event-Sequence": str(lease.seq),
        # Standard Webhooks 1.0: each try has the same id, but a time and a signature of its own.
        "webhook-id": lease.delivery,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(lease.delivery, now, body),
    }
    if push.sign:
        result |= push.sign(secret, body.encode())
    scheme = lease.schemes.partition(" ")[0]
    if lease.credentials and scheme.lower() != SIGNING_SCHEME:
        result["Authorization"] = f"{scheme} {unseal(lease.credentials)}"
    if lease.token:
        # Upstream's implementations disagree about the name (docs/protocol.md#deliveries).
        result["X-A2A-Notification-Token"] = result["A2A-Notification-Token"] = unseal(lease.token)
    return result


async def post(client: httpx.AsyncClient, lease: DeliveryLease, body: str, now: datetime) -> TryResult:
    """Make one try. Raises Crowded only; all other failures are in the result."""
    try:
        url = url_of(lease)
        host = policy.target(url).host
        body = with_files(body)
        fields = headers(lease, body, now)
        if is_needed(host):
            fields[REQUEST_ORIGIN] = sender_name()  # the same name as in the handshake (section 2.1)
    except policy.Blocked as error:
        return _refusal(error)
    except Unreadable:
        sentence = "Its secrets cannot be read: SECRET_KEY was changed, and SECRET_KEY_FALLBACKS lacks the former one."
        return TryResult(error=sentence)
    content = body.encode()
    result = await call(client, "POST", url, fields, content, read=_read, seconds=TRY_SECONDS)
    return replace(result, size=len(content))


async def call(
    client: httpx.AsyncClient,
    verb: str,
    url: str,
    fields: dict[str, str],
    content: bytes = b"",
    *,
    read: Callable[[httpx.Response], TryResult],
    seconds: float,
) -> TryResult:
    """Call a receiver, and return what `read` makes of the head of its answer, or why there is none. Raises Crowded."""
    result = TryResult(error=f"No answer within {seconds:g} s.")
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream(verb, url, content=content, headers=fields) as response,
        ):
            result = read(response)
            await _drain(response)
    except policy.Blocked as error:
        return _refusal(error)
    except policy.Unknown as unknown:
        return TryResult(error=f"The host was not found: {unknown}."[:255])
    except TimeoutError:
        pass
    except httpx.TimeoutException as error:
        return result if result.status else TryResult(error=f"No answer in time ({type(error).__name__}).")
    except httpx.TransportError as error:
        return result if result.status else TryResult(error=_what_failed(error)[:255])
    except httpx.InvalidURL:
        return TryResult(error="The address is not a valid URL.", hopeless=True)
    return result


def _what_failed(error: httpx.TransportError) -> str:
    """Return the fault of a connection in words. Only the cause of an error says that a port has no server."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "The connection was refused: nothing listens at this port."
        cause = cause.__cause__ or cause.__context__
    return f"The connection failed ({type(error).__name__})."


def _read(response: httpx.Response) -> TryResult:
    status = response.status_code
    error = "" if response.is_success else f"The receiver answered {status}."
    if response.is_redirect:
        error = f"The receiver answered {status}: redirects are not followed."
    return TryResult(status=status, error=error, retry_after=response.headers.get("Retry-After", "")[:64])


async def _drain(response: httpx.Response) -> None:
    """Read the beginning of the answer's body. The status has been read, so errors do not matter any more."""
    size = 0
    with contextlib.suppress(httpx.TransportError):
        async for piece in response.aiter_raw():
            size += len(piece)
            if size >= READ_BYTES:
                break


def _refusal(error: policy.Blocked) -> TryResult:
    return TryResult(error=f"The address {error}."[:255], hopeless=True)
