"""Callers: API keys, scopes, ownership, limits for each owner, network addresses, reserved paths."""
