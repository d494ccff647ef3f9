"""Hints: "task X reached event N" and "look for work". A lost hint costs latency and nothing else.

`local` passes hints on within the process, `redis_group` to other processes, `dispatch` to runners of agents.
"""

from tasks_app.hints.local import ANY, DueRows, Hints, Reached, hints

__all__ = ["ANY", "DueRows", "Hints", "Reached", "hints"]
