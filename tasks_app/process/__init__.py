"""The background work of a process, its HTTP server, its health."""
