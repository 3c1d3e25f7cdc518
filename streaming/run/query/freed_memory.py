"""Freed memory, given back to the operating system.

Three allocators share the driver: C's for Python's larger objects, Arrow's, and the one of delta-rs. Each keeps what is
freed for the next request. delta-rs' gives it back after ten seconds. The other two keep the most that was ever in use
at one time: after one large batch the driver stayed at four times its size (figures: `DESIGN.md`, one level up).
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

LARGE_BYTES = 16 << 20
"""A batch with less leaves nothing worth mentioning. To give back half a GB takes a tenth of a second."""


def return_freed_memory() -> None:
    """Give back what Arrow and C's allocator keep. On systems whose C library cannot do that, Arrow's alone."""
    pa.default_memory_pool().release_unused()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
