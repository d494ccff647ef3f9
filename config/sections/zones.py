"""Zones."""

from config.environment import whole

A2A_ATTACHMENT_BYTES = whole("A2A_ATTACHMENT_BYTES", 10_000_000, 1)
"""Bytes of an attachment of `execute_task`. A larger one is skipped, and the answer says so. `A2A_BODY_BYTES` limits
the call with all its contents before."""
