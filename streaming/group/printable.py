"""What groups hold and are called, fit to be shown to a person."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby


def printable(name: str) -> str:
    r"""Spell out what cannot be seen or misleads: terminal controls, marks that turn writing round, lone surrogates.

    Whoever puts the name into another language (HTML, a terminal's markup) escapes that language's signs besides.

    >>> printable("orders\x1b[2J"), printable("\u202egnp"), printable("\ud800"), printable("Zürich 🚀")
    ('orders\\x1b[2J', '\\u202egnp', '\\ud800', 'Zürich 🚀')
    """
    if name.isprintable():
        return name
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in name)


def in_ranges(numbers: Collection[int]) -> str:
    """Ascending numbers in short.

    >>> in_ranges([0, 1, 2, 5])
    '0-2,5'
    """
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
