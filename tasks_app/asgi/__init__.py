"""The ASGI application, its fast handler for the protocol's paths, and static files."""
