"""Callers and their rights: keys, tokens, scopes, ownership, network addresses, reserved paths."""
