"""Numbers, spans of time and names as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable

MOST_NAMED = 3


def in_words(milliseconds: float) -> str:
    """A span of time in the unit that fits.

    >>> in_words(45_000), in_words(60_000), in_words(5_400_000), in_words(7_200_000)
    ('45 seconds', '1 minute', '90 minutes', '2 hours')
    """
    seconds = max(0, round(milliseconds / 1000))
    for unit, of_unit in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * of_unit or seconds == of_unit:
            return counted(seconds // of_unit, unit)
    return counted(seconds, "second")


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "member"), counted(2, "member")
    ('1 member', '2 members')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """The first few names, and how many more.

    >>> named(["d", "b", "a", "c", "e"])
    'a, b, c and 2 more'
    """
    in_order = sorted(names)
    more = len(in_order) - MOST_NAMED
    return ", ".join(in_order[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def members_named(names: Iterable[str]) -> str:
    """Members by name, with the noun before them."""
    known = list(names)
    return f"member{'' if len(known) == 1 else 's'} {named(known)}"
