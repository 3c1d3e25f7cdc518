"""Check Hadoop's checksum files: `.NAME.crc` next to each file that Spark or this monitor wrote to a local disk.

A checksum file contains `crc`, a zero byte, the block size in bytes, and a CRC-32 for each block. A file without a
checksum file is valid: the monitor was killed between two renames, or a user copied the folder. Hadoop and this module
ignore a checksum file with an incomplete header. If the header is complete but a checksum is incomplete, the file
counts as damaged.
"""

from __future__ import annotations

import struct
import zlib

_MAGIC = b"crc\0"


def checksum_name(name: str) -> str:
    """Return the name of the checksum file that belongs to a file.

    >>> checksum_name("query/offsets/7")
    'query/offsets/.7.crc'
    """
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.crc"


def matches_checksums(content: bytes, checksums: bytes | None) -> bool:
    """Return True if the content matches the checksums, or if there are no checksums to compare."""
    if checksums is None or len(checksums) < 8 or checksums[:4] != _MAGIC:
        return True
    block_bytes = int.from_bytes(checksums[4:8], "big")
    count, rest = divmod(len(checksums) - 8, 4)
    if rest or block_bytes == 0:
        return False
    stored = struct.unpack(f">{count}I", checksums[8:])
    view = memoryview(content)
    return stored == tuple(zlib.crc32(view[at : at + block_bytes]) for at in range(0, len(content), block_bytes))
