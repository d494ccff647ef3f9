"""Everything that a caller can ask, once: a table from requests to operations, and the functions that perform them.

An operation is an `async def` that awaits work items, Await and RunQuick, and nothing else. It returns Done, Wait or
Follow. So it is written once, and runs on a loop (`perform`) or on a thread (`perform_now`). Waits take place in
`perform` and `wait_on` alone.
"""

from tasks_app.operations.dispatcher import OPERATIONS, authorize, cancel_for_operator, cost_of, perform, perform_now
from tasks_app.operations.operation import CallerLeft, Context, Follow, Wait
from tasks_app.operations.waiting import wait_on

__all__ = [
    "OPERATIONS",
    "CallerLeft",
    "Context",
    "Follow",
    "Wait",
    "authorize",
    "cancel_for_operator",
    "cost_of",
    "perform",
    "perform_now",
    "wait_on",
]
