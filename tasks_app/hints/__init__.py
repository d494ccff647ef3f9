"""Hints: "task X reached N" and "there is something to run". Losing one costs latency, never truth.

`local` is the port and its adapter for one process, `broadcast` joins the processes over Redis.
"""

from tasks_app.hints.local import ANY, Hints, Reached, hints

__all__ = ["ANY", "Hints", "Reached", "hints"]
