"""Return freed memory to the operating system.

The driver uses three memory allocators: one of the C library (for large Python objects), one of Arrow, and one of
delta-rs. Each allocator keeps freed memory for later requests. The allocator of delta-rs returns freed memory to the
system after ten seconds. The other two allocators never return memory, so they keep the largest amount that was ever in
use. So after one large batch, the memory of the driver stayed at four times its normal size. The measurements are in
`streaming/DESIGN.md`.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

LARGE_BYTES = 16 << 20
"""Minimum size of a batch, in bytes, after which freed memory is returned.

After smaller batches, there is little freed memory.

The return of 0.5 GB takes 0.1 seconds.
"""


def return_freed_memory() -> None:
    """Return the freed memory of Arrow and of the C library to the system.

    If the C library has no `malloc_trim`, return only the memory of Arrow.
    """
    pa.default_memory_pool().release_unused()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
