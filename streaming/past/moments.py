"""Parse the moment in a request about the past, for example `2026-11-22T22:04`.

1. A moment is a time in UTC: a date, `T` or a space, hours and minutes. Seconds, fractions of a second and `Z` are
   optional.
2. A whole number of at least 10^11 is a time in milliseconds since 1970.
3. A whole number of at most 2^31 - 1 (Kafka's largest generation) is a generation. Only a request that compares two
   generations can contain a generation. A whole number between 2^31 - 1 and 10^11 is not valid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_MS = 10**11
_LAST_MS = 253_402_300_799_000  # the last second of the year 9999
_LAST_GENERATION = 2**31 - 1
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?(\.\d{1,6})?Z?")
_NUMBER = re.compile(r"\d{1,15}")


@dataclass(frozen=True, slots=True)
class Generation:
    """The number of a generation or epoch. It selects the generation's last row in a state other than Dead and Gone."""

    generation_id: int


def parse_moment(text: str) -> int | None:
    """Return the moment in milliseconds since 1970. Return None if the text is not a moment (rules 1 and 2).

    >>> parse_moment("2026-11-22T22:04"), parse_moment("2026-11-22 22:04:05.250Z"), parse_moment("1795385040000")
    (1795385040000, 1795385045250, 1795385040000)
    >>> parse_moment("yesterday"), parse_moment("2026-02-30T00:00"), parse_moment("17")
    (None, None, None)
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped) and stripped.isascii():
        return int(stripped) if _FIRST_MS <= int(stripped) <= _LAST_MS else None
    found = _MOMENT.fullmatch(stripped)
    if found is None or not stripped.isascii() or (found[4] and not found[3]):
        return None
    fraction = (found[4] or ".0").ljust(7, "0")
    try:
        parsed = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[3] or ':00'}{fraction}+00:00")
    except ValueError:
        return None
    milliseconds = (parsed - _EPOCH) // timedelta(milliseconds=1)
    return milliseconds if milliseconds >= 0 else None


def parse_moment_or_generation(text: str) -> int | Generation | None:
    """Return a moment in milliseconds, or a generation. Return None if the text is not valid (rules 1 to 3).

    >>> [parse_moment_or_generation(text) for text in ("17", "1970-01-01T00:01", "x")]
    [Generation(generation_id=17), 60000, None]
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped) and stripped.isascii() and int(stripped) <= _LAST_GENERATION:
        return Generation(int(stripped))
    return parse_moment(stripped)


def format_moment(at_ms: int) -> str:
    """Return a moment as text that `parse_moment` accepts. Omit seconds and fractions that are 0.

    >>> format_moment(1795385040000), format_moment(1795385045250)
    ('2026-11-22T22:04', '2026-11-22T22:04:05.250')
    """
    moment = datetime.fromtimestamp(at_ms // 1000, timezone.utc)
    milliseconds = at_ms % 1000
    if milliseconds:
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds:03}"
    return f"{moment:%Y-%m-%dT%H:%M:%S}" if moment.second else f"{moment:%Y-%m-%dT%H:%M}"
