"""Calls of the execution zone: JSON-RPC in the language of zones, whatever carries the bytes."""

import asyncio
import logging
import random

import orjson

from a2a import errors
from a2a.client.bodies import check_values
from a2a.client.errors import InvalidResponse
from a2a.failures import Failure, Retry
from a2a.types import Json
from tasks_app.masking import mask_text
from tasks_app.zones.carriers import Carrier, NoAnswer, Untrusted

log = logging.getLogger(__name__)
TRIES, FIRST_PAUSE = 3, 0.2
"""Tries of one call, and the seconds before the second; each later pause is twice as long."""
LATER = frozenset({errors.RateLimited.reason, errors.Unavailable.reason})
"""Reasons of errors that may pass."""
OWN = frozenset({errors.Unauthenticated.reason, errors.MissingScope.reason})
"""Reasons that concern this deployment, whose caller can do nothing about them."""
TEXTS = ("status", "response_text", "task_id")
"""Members that each result has."""
WORDS = 300
"""Characters of an error of the execution zone that a caller sees."""


async def call(carrier: Carrier, method: str, params: Json, rpc_id: str, owner: str = "") -> Json:
    """Return the result of an owner's call.

    It is sent again while no answer comes, and its key keeps it from being done twice.
    Raises Retry for an error that may pass, and Failure for any other.
    """
    body = orjson.dumps({"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params})
    for attempt in range(TRIES):
        try:
            return result_of(await carrier.carry(body, owner), rpc_id)
        except Untrusted as problem:
            log.error("no call was sent to the execution zone: %s", problem)
            raise Failure("The execution zone has no certificate that this deployment trusts.") from None
        except NoAnswer as problem:
            log.warning("the execution zone gave no answer to %s %s: %s", method, rpc_id, mask_text(str(problem)))
            if attempt + 1 < TRIES:
                await asyncio.sleep(FIRST_PAUSE * 2**attempt * random.uniform(0.8, 1.2))  # noqa: S311  # jitter
    raise Retry("The execution zone does not answer.", reason=errors.Unavailable.reason)


def result_of(body: bytes, rpc_id: str) -> Json:
    """Return the result in an answer. Raises NoAnswer for what is no answer to this call, Failure and Retry."""
    try:
        check_values(body, "")
        answer = orjson.loads(body)
        error, result, id = answer.get("error"), answer.get("result"), answer["id"]
    except InvalidResponse as problem:
        raise NoAnswer(problem.what) from None
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        raise NoAnswer("the answer is not JSON-RPC 2.0") from None
    if isinstance(error, dict) and "result" not in answer:
        raise failure_of(error)
    if id != rpc_id or not isinstance(result, dict):
        raise NoAnswer("the answer is not that to this call")
    if wrong := [name for name in TEXTS if not isinstance(result.get(name), str)]:
        raise NoAnswer(f"the result has no text {wrong[0]}")
    return result


def failure_of(error: Json) -> Failure:
    """Return the failure of a task for an error of the execution zone, in safe words."""
    data = error.get("data")
    reason = str((data if isinstance(data, dict) else {}).get("reason", ""))
    words = mask_text(str(error.get("message", "")))[:WORDS]
    if reason in OWN:
        log.error("the execution zone refuses this deployment: %s; see A2A_EXECUTION_KEY", words)
        return Failure("The execution zone refuses this deployment.")
    if reason in LATER:
        seconds = data.get("retry_after") if isinstance(data, dict) else None
        return Retry(words, after=float(seconds) if isinstance(seconds, int) else None, reason=reason)
    return Failure(words, reason=reason)
