"""Which names somebody wants to see: two regular expressions, of which the one allows and the other denies.

1. A name passes if the whole of it matches what is allowed, and the whole of it does not match what is denied.
2. Expressions are RE2's (https://github.com/google/re2/wiki/Syntax), which pyarrow brings along: whatever the
   expression and the name, matching takes time in proportion to the name. Python's own may take years, and names of
   groups are given by strangers. There are no look-arounds and no back references for it.
3. A dot matches a line break, too: a name that has one is not left in by a denial that says `.*`.
4. What no UTF-8 can say (a lone surrogate) is matched as `?`, which is how a scrape shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

EVERYTHING = ".*"
NOTHING = ""


class PatternError(ValueError):
    """An expression is none; the message says what is wrong with it."""


def check_pattern(pattern: str) -> None:
    """Raise PatternError unless the expression can be used.

    >>> check_pattern("payments-.*|orders")
    >>> check_pattern("(payments")
    Traceback (most recent call last):
    streaming.config.names.PatternError: no regular expression of RE2: missing ): (payments
    """
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)  # `a)|(b` is none, though between parentheses it is
        _matches(pa.array([""]), pattern)
    except ValueError as invalid:  # of pyarrow, or of Unicode where an environment holds other bytes
        reason = str(invalid).removeprefix("Invalid regular expression: ")
        raise PatternError(f"no regular expression of RE2: {reason}") from None


def _whole(pattern: str) -> str:
    return rf"(?s)\A(?:{pattern})\z"


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Rules 1 to 4. An empty `deny` denies nothing."""

    allow: str = EVERYTHING
    deny: str = NOTHING

    @property
    def passes_all(self) -> bool:
        """Whether there is nothing to ask."""
        return self.allow == EVERYTHING and self.deny == NOTHING

    def passing(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """For each name whether it passes.

        >>> NameFilter("orders.*", ".*-test").passing(["orders", "orders-test", "my-orders"]).tolist()
        [True, False, False]
        """
        passes = np.ones(len(names), dtype=bool)
        if self.passes_all:
            return passes
        column = pa.array([name.encode(errors="replace").decode() for name in names], pa.string())
        passes &= _matches(column, self.allow)
        if self.deny != NOTHING:
            passes &= ~_matches(column, self.deny)
        return passes

    def among(self, names: Iterable[str]) -> list[str]:
        """Those that pass, in their order."""
        found = list(names)
        return found if self.passes_all else list(compress(found, self.passing(found)))


EVERY_NAME = NameFilter()


def _matches(names: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.match_substring_regex(names, pattern=_whole(pattern)).to_numpy(
        zero_copy_only=False
    )
    return found
