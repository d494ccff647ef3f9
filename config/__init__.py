"""Wiring only: settings, URLs, the ASGI and Celery applications."""
