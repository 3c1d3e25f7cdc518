"""Return freed memory to the operating system.

The allocator of delta-rs returns freed memory to the system after ten seconds. The allocators of the C library and of
Arrow never return memory by themselves. In a measurement, a driver kept four times its normal memory after one large
batch (`streaming/DESIGN.md`).
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

LARGE_BYTES = 16 << 20
"""Freed memory is returned only after a batch of at least this size. To return 0.5 GB takes 0.1 seconds."""


def return_freed_memory() -> None:
    """Return the freed memory of Arrow and of the C library (with `malloc_trim`) to the system."""
    pa.default_memory_pool().release_unused()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
