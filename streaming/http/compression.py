"""Compresses responses of up to 100 MB with Intel's gzip library.

The output has the same size as the output of zlib. The compression takes a fifth of zlib's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isal import isal_zlib

from streaming.prometheus.exposition import Text

LEVEL = 1
"""Compression level. Level 0 takes the same time as level 1, but its output is 50 % larger.

Level 3 takes five times as long as level 1, and its output is only 1 % smaller.
"""
MIN_PIECE_BYTES = 4 << 20
_AS_GZIP = 31


def compress_gzip(pieces: Iterable[Text]) -> bytes:
    """Compress all pieces, in their order, into one gzip member (RFC 1952).

    >>> import gzip
    >>> gzip.decompress(compress_gzip([b"one ", b"two"]))
    b'one two'
    """
    member = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _AS_GZIP)
    return b"".join([*map(member.compress, _join_pieces(pieces)), member.flush()])


def _join_pieces(pieces: Iterable[Text]) -> Iterator[Text]:
    """Combine small pieces into larger pieces of at least MIN_PIECE_BYTES.

    Each call of the compressor releases Python's global lock. If other threads are busy, the call then waits one switch
    interval for the lock. So few large pieces are faster than many small pieces. But one piece with the whole response
    would need up to 100 MB of additional memory.
    """
    pending: list[Text] = []
    pending_bytes = 0
    for piece in pieces:
        pending.append(piece)
        pending_bytes += memoryview(piece).nbytes
        if pending_bytes >= MIN_PIECE_BYTES:
            yield b"".join(pending)
            pending, pending_bytes = [], 0
    yield b"".join(pending)
