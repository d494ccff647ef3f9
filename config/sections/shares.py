"""Fair shares."""

from config.environment import number, whole

A2A_OWNER_SLOTS = number("A2A_OWNER_SLOTS", 0.5, 0, 1)
"""The share of a process's slots that one owner may have while others wait."""
A2A_OWNER_TASKS = whole("A2A_OWNER_TASKS", 5_000, 1)
"""Unfinished tasks, queued and running, of one owner. Further ones are refused with `Retry-After`. In a process, an
owner may also have this many calls that wait for longer than `A2A_PING_SECONDS`."""
A2A_AGENT_TASKS = whole("A2A_AGENT_TASKS", 10_000, 1)
"""Unfinished tasks of one agent. Further ones are refused with `Retry-After`."""
A2A_TASKS = whole("A2A_TASKS", 20_000, 1)
"""Unfinished tasks in total. Further ones are refused with `Retry-After`."""
A2A_TASK_CHARACTERS = whole("A2A_TASK_CHARACTERS", 10_000_000, 10_000)
"""Characters of a task's events in JSON. A message beyond them is refused with -32004, and a run that writes more fails
with a sentence that names the limit. Stored files have limits of their own."""
A2A_TASK_EVENTS = whole("A2A_TASK_EVENTS", 100_000, 10)
"""Events of a task, with the same effects as `A2A_TASK_CHARACTERS`."""
A2A_TASK_MESSAGES = whole("A2A_TASK_MESSAGES", 1_000, 1)
"""Messages of the caller to one task. Further ones are refused with -32004."""
A2A_OWNER_STORED_BYTES = whole("A2A_OWNER_STORED_BYTES", 10_000_000_000, 0, 10**18)
"""The quota: bytes that one owner may have stored in tasks, files, memory, shared streams, workflows and recorded
calls. At the quota, new work is refused with `Retry-After`. 0: no quota."""
A2A_OWNER_STREAMS = whole("A2A_OWNER_STREAMS", 2_000, 1)
"""Open streams of one owner in a process."""
A2A_STREAMS = whole("A2A_STREAMS", 10_000, 1)
"""Open streams in a process."""
A2A_OWNER_SOCKETS = whole("A2A_OWNER_SOCKETS", 1_000, 1)
"""Open WebSocket connections of one owner in a process. Further ones are refused with `Retry-After`."""
A2A_SOCKETS = whole("A2A_SOCKETS", 5_000, 1)
"""Open WebSocket connections in a process. Further ones are refused with `Retry-After`."""
A2A_OWNER_CALLS = whole("A2A_OWNER_CALLS", 64, 1)
"""Calls of one owner that a process works on at the same time, if no other owner has called in the last second.
Otherwise it is an eighth of them. A further call waits for its turn, for `A2A_CALL_SECONDS` at most, and its WebSocket
connection is not read meanwhile. Calls that wait for a task, a quick agent or a list do not count."""
A2A_OWNER_TICKETS = whole("A2A_OWNER_TICKETS", 100, 1)
"""Unused tickets for WebSocket connections of one owner. Further ones are refused with `Retry-After`."""
A2A_OWNER_READS = whole("A2A_OWNER_READS", 64, 1)
"""Waiting long reads (lists) of one owner in a process."""
