"""Formats names and partition numbers for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby
from operator import itemgetter

from assignors import TopicPartition


def printable(name: str) -> str:
    r"""Replace invisible and misleading characters with their escape sequences.

    Examples are control characters of terminals, characters that change the writing direction, and lone surrogates. The
    caller must also escape the special characters of its output format (HTML, terminal markup).

    >>> printable("orders\x1b[2J"), printable("\u202egnp"), printable("\ud800"), printable("Zürich 🚀")
    ('orders\\x1b[2J', '\\u202egnp', '\\ud800', 'Zürich 🚀')
    """
    if name.isprintable():
        return name
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in name)


def in_ranges(numbers: Collection[int]) -> str:
    """Format ascending numbers as ranges.

    >>> in_ranges([0, 1, 2, 5])
    '0-2,5'
    """
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def by_topic(partitions: Iterable[TopicPartition]) -> tuple[tuple[str, str], ...]:
    """Return each topic with its partition numbers as ranges.

    >>> by_topic([("orders", 2), ("orders", 0), ("orders", 1), ("clicks", 7)])
    (('clicks', '7'), ('orders', '0-2'))
    """
    topics = groupby(sorted(partitions), key=itemgetter(0))
    return tuple((topic, in_ranges([number for _, number in of_topic])) for topic, of_topic in topics)
