"""Format durations, counts and lists of names for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

MOST_NAMED = 3
"""Maximum number of names in a list. If there are more names, the list ends with the number of the other names."""
_PLAIN_NAME = re.compile(r"[\w.:/@()\[\]-]+")


def in_words(milliseconds: float) -> str:
    """Return a duration as text in seconds, minutes or hours.

    >>> in_words(45_000), in_words(60_000), in_words(5_400_000), in_words(7_200_000)
    ('45 seconds', '1 minute', '90 minutes', '2 hours')
    """
    seconds = max(0, round(milliseconds / 1000))
    for unit, unit_seconds in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * unit_seconds or seconds == unit_seconds:
            return counted(seconds // unit_seconds, unit)
    return counted(seconds, "second")


def counted(number: int, noun: str) -> str:
    """Return a number and a noun. The noun is plural if the number is not 1.

    >>> counted(1, "member"), counted(1_200, "member")
    ('1 member', '1,200 members')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rate_number(records_per_second: float) -> str:
    """Return a rate as text, without its unit. Rates below 10 have at most one decimal.

    >>> rate_number(1234.4), rate_number(2.25), rate_number(3.0)
    ('1,234', '2.2', '3')
    """
    return f"{records_per_second:,.{0 if records_per_second >= 10 else 1}f}".removesuffix(".0")


def name_in_text(name: str) -> str:
    r"""Return a name for use in a sentence. A name that is not one plain word gets quotation marks.

    Kafka allows any text as a group id. Without quotation marks, one name can look like two names.

    >>> print(name_in_text("orders-eu.v2"), name_in_text("b, c"), name_in_text(""), name_in_text('a", "b'))
    orders-eu.v2 "b, c" "" "a\", \"b"
    """
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def first_named(names: Sequence[str]) -> str:
    """Return the first MOST_NAMED names in the given order, and the number of the other names.

    >>> first_named(["b", "a"]), first_named(["d", "b", "a", "c", "e"])
    ('b, a', 'd, b, a and 2 more')
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def named(names: Iterable[str]) -> str:
    """Return the first MOST_NAMED names in sorted order for use in a sentence, and the number of the other names.

    >>> named(["d", "b", "a", "c", "e"]), named(["b, c", "a"])
    ('a, b, c and 2 more', 'a, "b, c"')
    """
    return first_named([name_in_text(name) for name in sorted(names)])


def members_named(names: Iterable[str]) -> str:
    """Return the word `member` or `members`, followed by the names of the members."""
    listed = list(names)
    return f"member{'' if len(listed) == 1 else 's'} {named(listed)}"
