"""Memory."""

from config.environment import number, whole

A2A_MEMORY_ENTRY_BYTES = whole("A2A_MEMORY_ENTRY_BYTES", 65_536, 1, 10_000_000)
"""Bytes of the data of one entry of the memory, as JSON."""
A2A_OWNER_MEMORY_ENTRIES = whole("A2A_OWNER_MEMORY_ENTRIES", 10_000, 0, 10_000_000)
"""Entries that one owner may have in the memory. 0: no limit."""
A2A_OWNER_MEMORY_BYTES = whole("A2A_OWNER_MEMORY_BYTES", 100_000_000, 0, 1_000_000_000_000)
"""Bytes of the data of all entries of one owner. 0: no limit."""
A2A_MEMORY_DAYS = number("A2A_MEMORY_DAYS", 0, 0, 36_500)
"""Days after which every entry of the memory expires, counted from its last write. 0: only entries with a ttl do."""
