"""Shared streams."""

from config.environment import number, whole

A2A_SHARED_STREAM_PARTICIPANTS = whole("A2A_SHARED_STREAM_PARTICIPANTS", 50, 2, 1_000)
"""Participants of a shared stream."""
A2A_SHARED_STREAM_CHUNKS = whole("A2A_SHARED_STREAM_CHUNKS", 10_000, 1, 1_000_000)
"""Chunks of a shared stream. An answer of an agent that does not fit closes the stream."""
A2A_SHARED_STREAM_CHARACTERS = whole("A2A_SHARED_STREAM_CHARACTERS", 10_000_000, 1_000, 1_000_000_000)
"""Characters of all chunks of a shared stream."""
A2A_SHARED_STREAM_HOURS = number("A2A_SHARED_STREAM_HOURS", 24, 0, 876_000)
"""The time without a chunk after which a shared stream is closed. 0: no limit."""
A2A_OWNER_SHARED_STREAMS = whole("A2A_OWNER_SHARED_STREAMS", 1_000, 0, 1_000_000)
"""Shared streams that one owner may have open at the same time. 0: no limit."""
