"""Filter names of groups and topics with two regular expressions: `allow` and `deny`.

1. A name passes if `allow` matches the complete name and `deny` does not match the complete name.
2. Expressions use the RE2 syntax (https://github.com/google/re2/wiki/Syntax), because pyarrow contains RE2. A client
   can choose any name for its group, so matching must be fast for every name. RE2 needs time proportional to the length
   of the name. Python's `re` needs exponential time for some names. RE2 supports no look-arounds and no back
   references.
3. A dot also matches a line break. So `.*` matches every name.
4. A character that UTF-8 cannot encode (a lone surrogate) is replaced by `?` before matching. `/metrics` contains `?`
   for a lone surrogate, too.
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
    """Error: the expression is not valid in RE2. The message contains the reason."""


def check_pattern(pattern: str) -> None:
    """Raise PatternError if RE2 cannot compile the expression.

    >>> check_pattern("payments-.*|orders")
    >>> check_pattern("(payments")
    Traceback (most recent call last):
    streaming.config.names.PatternError: not a regular expression of RE2: missing ): (payments
    """
    try:
        pc.match_substring_regex(pa.array([""]), pattern=pattern)  # inside parentheses, `a)|(b` would be valid
        _matches(pa.array([""]), pattern)
    except ValueError as invalid:  # from pyarrow, or from Unicode if an environment variable has invalid UTF-8
        reason = str(invalid).removeprefix("Invalid regular expression: ")
        raise PatternError(f"not a regular expression of RE2: {reason}") from None


@dataclass(frozen=True, slots=True)
class NameFilter:
    """A filter that follows rules 1 to 4. If `deny` is empty, no name is denied."""

    allow: str = EVERYTHING
    deny: str = NOTHING

    @property
    def passes_all(self) -> bool:
        """True if every name passes the filter."""
        return self.allow == EVERYTHING and self.deny == NOTHING

    def passing(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return True for each name that passes the filter, and False for each other name.

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
        """Return the names that pass the filter, in the order of the input."""
        candidates = list(names)
        return candidates if self.passes_all else list(compress(candidates, self.passing(candidates)))


EVERY_NAME = NameFilter()


def _matches(names: pa.Array, pattern: str) -> npt.NDArray[np.bool_]:
    found = pc.match_substring_regex(names, pattern=rf"(?s)\A(?:{pattern})\z")
    matches: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return matches
