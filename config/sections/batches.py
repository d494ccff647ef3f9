"""Batches."""

from config.environment import whole

A2A_BATCH_ITEMS = whole("A2A_BATCH_ITEMS", 1_000, 1, 100_000)
"""Items of a batch."""
A2A_BATCH_CONCURRENT = whole("A2A_BATCH_CONCURRENT", 100, 1, 10_000)
"""The most items of one batch that are at work at the same time."""
A2A_OWNER_BATCHES = whole("A2A_OWNER_BATCHES", 10, 0, 10_000)
"""Batches that one owner may have open at the same time. 0: no limit."""
A2A_BATCH_RESULT_CHARACTERS = whole("A2A_BATCH_RESULT_CHARACTERS", 10_000, 0, 1_000_000)
"""Characters of the result of an item that the task of its batch repeats. The task of the item has all of it."""
