"""Who asks: keys, scopes, ownership, what an owner has in flight, limits, reserved paths."""
