"""Calls to addresses that callers choose, such as webhooks: which are allowed, and a client that makes no others."""
