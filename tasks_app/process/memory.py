"""Memory of the process: large blocks return to the system as soon as they are freed."""

import ctypes
import logging

log = logging.getLogger(__name__)
LARGE = 0x40000
"""The size from which a block has a memory mapping of its own, which returns to the system when the block is freed."""
_M_MMAP_THRESHOLD = -3
"""The number of mallopt's parameter M_MMAP_THRESHOLD in glibc's <malloc.h>."""


def return_large_blocks() -> bool:
    """Make the allocator return freed blocks of LARGE bytes to the system; return whether it can.

    By default glibc raises this size with each such block that is freed, up to 32 MB. One answer of 10 MB then leaves
    the process 70 MB larger; with a fixed size it leaves nothing. Other C libraries do not need the setting.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or not set_option(_M_MMAP_THRESHOLD, LARGE):
        log.debug("this C library has no limit for large blocks of memory")
        return False
    return True
