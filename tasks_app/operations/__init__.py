"""Everything that can be asked, once. A table from request to operation, and `perform` and `wait_on`, which alone wait.

An operation is a generator: it yields what it needs from the bridge and is sent the results, and it returns Done,
Wait or Follow. So it is written once, and driven from a loop (perform) or from a thread (perform_now).
"""

from tasks_app.operations.perform import OPERATIONS, cancel_for_operator, check_may, perform, perform_now
from tasks_app.operations.shape import Context, Follow, Left, Wait
from tasks_app.operations.waiting import wait_on

__all__ = [
    "OPERATIONS",
    "Context",
    "Follow",
    "Left",
    "Wait",
    "cancel_for_operator",
    "check_may",
    "perform",
    "perform_now",
    "wait_on",
]
