"""gzip for answers of a hundred MB, by Intel's library: a fifth of zlib's time for no more bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isal import isal_zlib

from streaming.prometheus.exposition import Text

LEVEL = 1
"""Level 0 takes as long for half as many bytes more, level 3 five times as long for a hundredth less."""
ENOUGH_BYTES = 4 << 20
_AS_GZIP = 31


def gzipped(pieces: Iterable[Text]) -> bytes:
    """All pieces one behind the other, as one gzip member (RFC 1952).

    >>> import gzip
    >>> gzip.decompress(gzipped([b"one ", b"two"]))
    b'one two'
    """
    member = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _AS_GZIP)
    return b"".join([*map(member.compress, _in_large(pieces)), member.flush()])


def _in_large(pieces: Iterable[Text]) -> Iterator[Text]:
    """The same in pieces of at least so many bytes.

    To compress is to let other threads run, and while they compute each return costs Python's switch interval. Joined,
    some MB at a time are copied once more: into memory that is there already, unlike that of a whole answer.
    """
    waiting: list[Text] = []
    waiting_bytes = 0
    for piece in pieces:
        waiting.append(piece)
        waiting_bytes += memoryview(piece).nbytes
        if waiting_bytes >= ENOUGH_BYTES:
            yield b"".join(waiting)
            waiting, waiting_bytes = [], 0
    yield b"".join(waiting)
