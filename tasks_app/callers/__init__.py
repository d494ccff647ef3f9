"""Callers, who ask: keys, tokens, scopes, ownership, network addresses, reserved paths."""
