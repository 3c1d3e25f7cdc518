"""Computes the partition to which Kafka's default partitioner writes a record with a key.

A producer uses the default partitioner if the application does not choose the partition and ``partitioner.class`` is
not set. The default partitioner uses the key if ``partitioner.ignore.keys`` is false. An empty key is hashed like every
other key. For records without a key, the producer chooses one partition for each batch.

By default, librdkafka hashes keys with CRC-32. It hashes like Java only if its setting ``partitioner`` is ``murmur2``
or ``murmur2_random``. So with default settings, a Java producer and a librdkafka producer may write records with the
same key to different partitions.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

_INT_BITS = 0xFFFF_FFFF
_SEED = 0x9747_B28C
_MULTIPLIER = 0x5BD1_E995
_BLOCK_BYTES = 4


def partition_for_key(key: bytes, partitions: int) -> int:
    """Return the partition of a serialized key: ``Utils.toPositive(Utils.murmur2(key)) % partitions``.

    Raises ValueError if the topic has no partitions. Source: ``BuiltInPartitioner.partitionForKey``.

    A topic has 2 partitions and one record for each of the keys "0" to "99". Both partitions get almost the same number
    of records:

    >>> from collections import Counter
    >>> sorted(Counter(partition_for_key(str(number).encode(), 2) for number in range(100)).items())
    [(0, 51), (1, 49)]
    >>> partition_for_key(b"42", 2), partition_for_key(b"42", 3)
    (0, 1)
    """
    if partitions < 1:
        raise ValueError("the topic must have at least one partition")
    return to_positive(murmur2(key)) % partitions


def to_positive(number: int) -> int:
    """Clear the sign bit of a signed 32-bit number, as ``Utils.toPositive`` does.

    >>> to_positive(-1), to_positive(5)
    (2147483647, 5)
    """
    return number & 0x7FFF_FFFF


def murmur2(key: bytes) -> int:
    """Compute the 32-bit MurmurHash2 of a key as a signed number. Source: ``Utils.murmur2``.

    >>> murmur2(b"21"), murmur2(b"")
    (-973932308, 275646681)
    """
    hashed = _SEED ^ len(key)
    whole_blocks_bytes = len(key) - len(key) % _BLOCK_BYTES
    for start in range(0, whole_blocks_bytes, _BLOCK_BYTES):
        block = _multiply(int.from_bytes(key[start : start + _BLOCK_BYTES], "little"))
        hashed = _multiply(hashed) ^ _multiply(block ^ (block >> 24))
    if rest := key[whole_blocks_bytes:]:
        hashed = _multiply(hashed ^ int.from_bytes(rest, "little"))
    hashed = _multiply(hashed ^ (hashed >> 13))
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed & 0x8000_0000 else hashed


def share_of_moved_keys(before: int, after: int) -> Fraction:
    """Return the share of keys that move to a different partition if a topic grows to ``after`` partitions.

    ``before`` is the number of partitions that the topic has now. A key stays in its partition if ``hash % before`` is
    equal to ``hash % after``. Of ``before * after / gcd(before, after)`` consecutive hashes, exactly ``before`` hashes
    meet this condition. So the share is ``1 - gcd(before, after) / after``. If ``after`` is a multiple of ``before``,
    the share is ``1 - before / after``. The formula is true for every partitioner that computes ``hash % partitions``
    from an evenly distributed hash. Raises ValueError if ``after`` is less than ``before``, because topics cannot
    shrink.

    >>> share_of_moved_keys(12, 24), share_of_moved_keys(10, 12), share_of_moved_keys(3, 3)
    (Fraction(1, 2), Fraction(5, 6), Fraction(0, 1))
    """
    if not 1 <= before <= after:
        raise ValueError(f"a topic cannot change from {before} to {after} partitions")
    return 1 - Fraction(gcd(before, after), after)


def _multiply(number: int) -> int:
    return number * _MULTIPLIER & _INT_BITS
