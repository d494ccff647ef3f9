"""The ASGI application: the handler of the hot paths, and static files."""
