"""A process of the service: its background work, its HTTP server, its health."""
