"""Our own cards, and the addresses at which we are reached."""
