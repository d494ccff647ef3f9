"""The memory: entries of owners by namespace and key. Nothing else writes its tables.

entries.py writes one entry at a time, reading.py reads, lists and searches, runs.py is the memory of an agent's run.
"""
