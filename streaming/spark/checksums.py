"""Hadoop's checksum files: `.NAME.crc` beside each file that Spark or this monitor wrote to a local disk.

A checksum file is `crc`, a zero byte, the number of bytes in a block, and a CRC-32 for each block of the file. A file
without one is as good: a kill between the two renames leaves none, and so does a copy made by hand. Hadoop ignores a
checksum file without a whole head; so does this module. Behind a whole head it fails on half a checksum.
"""

from __future__ import annotations

import struct
import zlib

_MAGIC = b"crc\0"


def checksum_name(name: str) -> str:
    """The checksum file of a file.

    >>> checksum_name("query/offsets/7")
    'query/offsets/.7.crc'
    """
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.crc"


def is_as_written(content: bytes, checksums: bytes | None) -> bool:
    """Whether the content has the checksums; true as well if there are none to compare with."""
    if checksums is None or len(checksums) < 8 or checksums[:4] != _MAGIC:
        return True
    block_bytes = int.from_bytes(checksums[4:8], "big")
    count, rest = divmod(len(checksums) - 8, 4)
    if rest or block_bytes == 0:
        return False
    stored = struct.unpack(f">{count}I", checksums[8:])
    view = memoryview(content)
    return stored == tuple(zlib.crc32(view[at : at + block_bytes]) for at in range(0, len(content), block_bytes))
