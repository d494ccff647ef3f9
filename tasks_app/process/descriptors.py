"""How many connections a process may have, by its file descriptors."""

import resource

from django.conf import settings

KEPT_DESCRIPTORS = 128
"""File descriptors that no connection may take. The process needs about 50, and agents open files and sockets."""
DESCRIPTORS = 0.8
"""The part of the other file descriptors that connections may take."""
LEAST_DESCRIPTORS = 0.125
"""The part of all file descriptors that connections may always take, so that a process with very few still answers."""


def max_connections() -> int:
    """Return the limit of connections of this process: A2A_CONNECTIONS, or less if file descriptors are few."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return settings.A2A_CONNECTIONS
    part = max((descriptors - KEPT_DESCRIPTORS) * DESCRIPTORS, descriptors * LEAST_DESCRIPTORS)
    return max(1, min(settings.A2A_CONNECTIONS, int(part)))
