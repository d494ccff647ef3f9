"""Damaged rows, which operators see as far as they can be read."""

from a2a.errors import Error

BROKEN = (Error, KeyError, TypeError, ValueError, AttributeError, AssertionError)
"""Exceptions that a damaged document or log may raise while it is decoded or folded: AssertionError for a kind of event
that this version does not know."""
