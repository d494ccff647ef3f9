"""Calls."""

from config.environment import number, whole

A2A_BODY_BYTES = whole("A2A_BODY_BYTES", 1_000_000, 1_000)
"""Bytes of a request's body."""
A2A_OWNER_BODY_BYTES = whole("A2A_OWNER_BODY_BYTES", max(16_000_000, A2A_BODY_BYTES), A2A_BODY_BYTES)
"""Bytes of large or slow requests and answers of one owner in a process, and of small answers in batches and on
sockets. All callers without a key count as one owner. A call beyond them is refused with `Retry-After`."""
A2A_BODIES_BYTES = whole("A2A_BODIES_BYTES", 4 * A2A_OWNER_BODY_BYTES, A2A_OWNER_BODY_BYTES)
"""Bytes of all owners in a process that count as for `A2A_OWNER_BODY_BYTES`. An owner has at most half of what others
have left, so that a few owners whose clients read slowly do not take all of it."""
A2A_BODY_SECONDS = number("A2A_BODY_SECONDS", 15, 0.1, 86_400)
"""The longest time for a request's body to arrive."""
A2A_HEADER_SECONDS = number("A2A_HEADER_SECONDS", 15, 0.1, 86_400)
"""The longest time for a request's head to arrive."""
A2A_WRITE_SECONDS = number("A2A_WRITE_SECONDS", 30, 0.1, 86_400)
"""The time after which a connection is closed if its client has read less than 16 kB of an answer and more is
waiting."""
A2A_KEEP_ALIVE_SECONDS = whole("A2A_KEEP_ALIVE_SECONDS", 75, 1, 86_400)
"""The longest time between two requests on a connection. A proxy in front should close its connections earlier, as
nginx and most others do, after 60 s."""
A2A_CONNECTIONS = whole("A2A_CONNECTIONS", 10_000, 1)
"""Connections of a process. Fewer if its file descriptors are few: 128 are kept for the process and its agents, and
connections may take 80 % of the others, or an eighth of all if that is more. At the limit a new connection replaces the
one whose client has kept the server waiting longest: for a request, for its body, or to read an answer. If the server
waits for no client, the new connection gets 503."""
A2A_WAIT_SECONDS = number("A2A_WAIT_SECONDS", 0, 0, 31_536_000)
"""The longest wait of a send, after which it answers with the task as it is. 0: it waits until the task ends or is
interrupted."""
A2A_PING_SECONDS = number("A2A_PING_SECONDS", 4, 0.1, 15)
"""The longest silence of an answer. After it a stream sends a comment, and a waiting call sends a space. The official
Python client gives up after 5 s. Keys are checked between two of these, every 15 s, so the limit is 15."""
A2A_STREAM_SECONDS = number("A2A_STREAM_SECONDS", 900, 1, 31_536_000)
"""The longest time that a stream stays open. Its client resumes with `Last-Event-ID`."""
A2A_LINK_SECONDS = whole("A2A_LINK_SECONDS", 3600, 0, 2_592_000)
"""The longest time that a link to a task's stream is valid, and the default. 0: no links are made."""
A2A_SOCKET_CALLS = whole("A2A_SOCKET_CALLS", 64, 1)
"""Calls in flight on one WebSocket connection, besides its streams. Further ones are refused with -38008. A batch is
one of them. Beside another batch, it is refused if they have more calls together."""
A2A_SOCKET_IDLE_SECONDS = number("A2A_SOCKET_IDLE_SECONDS", 300, 1, 31_536_000)
"""The time without a call or a stream after which a WebSocket connection is closed."""
A2A_TICKET_SECONDS = number("A2A_TICKET_SECONDS", 60, 1, 3_600)
"""The time for which a ticket opens a WebSocket connection."""
A2A_POLL_SECONDS = number("A2A_POLL_SECONDS", 2, 0.05, 86_400)
"""The longest delay of a stream when a hint is lost."""
A2A_CALL_SECONDS = number("A2A_CALL_SECONDS", 10, 0.1, 86_400)
"""The longest wait of a call for the database, and before that for its turn (`A2A_OWNER_CALLS`). Then it gets -38013
with `Retry-After`, and work that has not begun is not done."""
A2A_LANE_CALLS = whole("A2A_LANE_CALLS", 2000, 1)
"""Calls of one kind (writes, reads, long reads) that may wait for the database in a process, and calls of one owner
that may wait for their turn. A further call gets -38013."""
A2A_READ_CONNECTIONS = whole("A2A_READ_CONNECTIONS", 3, 2)
"""Database connections of a process for lists and other long reads. Owners take turns, and none has all of them."""
A2A_READ_SECONDS = number("A2A_READ_SECONDS", 5, 0.1, 86_400)
"""The longest time of one statement on such a connection."""
A2A_INVOKE_SECONDS = number("A2A_INVOKE_SECONDS", 30, 0.1, 86_400)
"""The time after which a call of `/invoke` is answered with a timeout, while its task goes on. Agents may set their own
(`max_latency`)."""
A2A_INVOKE_BYTES = whole("A2A_INVOKE_BYTES", 1_000_000, 1_000)
"""Bytes of a body at `/invoke`, `/invoke/stream` and `/negotiate`. `A2A_BODY_BYTES` limits it too."""
