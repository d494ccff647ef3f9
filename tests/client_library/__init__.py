"""Our own client: against servers that misbehave, against ours, and against those of others."""
