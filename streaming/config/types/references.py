"""The format of references to users' strategies.

The child process of each strategy also imports this module, so the module has few imports.
"""

from __future__ import annotations

import re


def is_reference(text: str) -> bool:
    """Return True if a text has the form ``module:attribute``.

    >>> is_reference("rate_weighted:from_file"), is_reference("rate_weighted"), is_reference("rate_weighted:")
    (True, False, False)
    """
    return re.fullmatch(r"[^\s:]+:[^\s:]+", text) is not None
