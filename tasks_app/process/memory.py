"""Memory of the process: large blocks go back to the system as soon as they are free."""

import ctypes
import logging

log = logging.getLogger(__name__)
LARGE = 0x40000
"""Bytes from which a block of memory is the system's own, and goes back to it alone."""
_M_MMAP_THRESHOLD = -3
"""The parameter of that number in glibc's <malloc.h>."""


def return_large_blocks() -> bool:
    """Have the allocator give blocks of LARGE bytes back when they are freed; return whether it can.

    By default glibc raises the limit with each such block that is freed, up to 32 MB. One answer of 10 MB then leaves
    the process 70 MB larger than before; with a fixed limit it leaves nothing. Other C libraries need no such setting.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or not set_option(_M_MMAP_THRESHOLD, LARGE):
        log.debug("this C library has no limit for large blocks of memory")
        return False
    return True
