"""The wire languages that the client speaks, one a file."""
