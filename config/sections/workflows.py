"""Workflows."""

from config.environment import whole

A2A_OWNER_WORKFLOWS = whole("A2A_OWNER_WORKFLOWS", 1_000, 0, 1_000_000)
"""Workflows that one owner may have active at the same time. 0: no limit."""
