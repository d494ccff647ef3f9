"""Calls to addresses that callers choose: which are allowed, and the client that makes only those."""
