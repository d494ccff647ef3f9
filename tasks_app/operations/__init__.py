"""Everything that can be asked, once. A table from request to operation, and `perform` and `wait_on`, which alone wait.

An operation is an `async def` that awaits work items (and Await and RunQuick, nothing else), and returns Done, Wait or
Follow. So it is written once, and driven from a loop (perform) or from a thread (perform_now).
"""

from tasks_app.operations.dispatcher import OPERATIONS, authorize, cancel_for_operator, perform, perform_now
from tasks_app.operations.operation import Context, Follow, Left, Wait
from tasks_app.operations.waiting import wait_on

__all__ = [
    "OPERATIONS",
    "Context",
    "Follow",
    "Left",
    "Wait",
    "authorize",
    "cancel_for_operator",
    "perform",
    "perform_now",
    "wait_on",
]
