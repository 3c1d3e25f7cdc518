"""Computes Java's hash codes and the iteration order of Java's hash tables.

Some assignments depend on the order of a Java hash table.
"""

from __future__ import annotations

from collections.abc import Iterable

from assignors.ordering import utf16_key

_INT_BITS = 0xFFFF_FFFF
_SMALLEST_TABLE = 16


def java_string_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: a signed 32-bit number, computed from the UTF-16 code units.

    >>> java_string_hash("my-group")
    -1906497762
    """
    units = utf16_key(text)
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _INT_BITS
    return value - (1 << 32) if value & 0x8000_0000 else value


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Return ``keys`` in the iteration order of a ``java.util.HashMap``.

    The keys are inserted into the map in the given order.

    >>> hash_map_order(["range", "cooperative-sticky", "sticky"])
    ['sticky', 'range', 'cooperative-sticky']
    """
    listed = list(keys)
    size = table_size(len(listed))
    return sorted(listed, key=lambda key: bucket(java_string_hash(key), size))


def topic_partition_hash(topic_hash: int, number: int) -> int:
    """Compute ``TopicPartition.hashCode`` from the hash of the topic's name."""
    return 31 * (31 + number) + topic_hash


def table_size(entries: int) -> int:
    """Return the number of buckets of a ``HashMap``.

    ``entries`` is the largest number of entries that the map ever had. When the number of entries exceeds three
    quarters of the number of buckets, the number of buckets doubles.

    >>> table_size(12), table_size(13)
    (16, 32)
    """
    size = _SMALLEST_TABLE
    while entries > size * 3 // 4:
        size *= 2
    return size


def bucket(hash_code: int, size: int) -> int:
    """Return the bucket of a key in a table of ``size`` buckets.

    A ``HashMap`` iterates over its buckets in ascending order. Inside a bucket, keys are in the order of insertion.
    """
    unsigned = hash_code & _INT_BITS
    return (unsigned ^ (unsigned >> 16)) & (size - 1)
