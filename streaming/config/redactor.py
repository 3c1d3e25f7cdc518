"""Removes known secrets from texts.

1. A secret is removed even if a program has escaped it. A secret can be escaped with backslashes (repr, JSON, bytes),
   percent-encoded, or escaped for HTML. If a secret is percent-encoded in the settings, the decoded secret is removed,
   too.
2. A secret with fewer than `_SHORT_SECRET` characters is removed only as a whole word. A secret of one character is not
   removed, because almost every text contains this character. Spaces around the character do not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import unquote

from streaming.config.secret_settings import REDACTED

_SHORT_SECRET = 4
_PART = re.compile(r"\\+|[^\\]", re.DOTALL)
_BACKSLASHES = r"\\+"
_LETTER_BEFORE, _LETTER_AFTER = r"(?<![^\W_])", r"(?![^\W_])"


class Redactor:
    """Removes given secrets from texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spelled = {text for secret in secrets for text in (secret, unquote(secret)) if len(text.strip()) > 1}
        longest_first = sorted(spelled, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(_pattern, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._secrets.sub(REDACTED, text) if self._secrets else text


def _pattern(secret: str) -> str:
    """Return a regular expression that matches a secret, escaped or not (rules 1 and 2)."""
    pattern = "".join(map(_part_pattern, _PART.findall(secret)))
    if len(secret) < _SHORT_SECRET:
        before = _LETTER_BEFORE if secret[0].isalnum() else ""
        after = _LETTER_AFTER if secret[-1].isalnum() else ""
        return f"{before}{pattern}{after}"
    return pattern


def _part_pattern(part: str) -> str:
    r"""Return a regular expression that matches a character or several backslashes, escaped or not.

    Consecutive backslashes are matched together, so that the search time cannot grow exponentially.

    >>> [bool(re.fullmatch(_part_pattern('"'), text)) for text in ('"', r'\\\"', "%22", "%2522", "&quot;", "%23")]
    [True, True, True, True, True, False]
    """
    if part.isascii() and part.isalnum():
        return part
    in_utf8 = part.encode("utf-8", "surrogatepass")
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in in_utf8)
    if part.startswith("\\"):
        return rf"(?i:\\{{{len(part)},}}|{percent})"
    escaped = {json.dumps(part)[1:-1], ascii(part)[1:-1], "".join(f"\\x{byte:02x}" for byte in in_utf8)}
    spellings = [
        rf"\\*{re.escape(part)}",
        *(re.escape(text).replace(r"\\", _BACKSLASHES) for text in sorted(escaped) if text.startswith("\\")),
        percent,
        f"&#(?:{ord(part)}|x{ord(part):x});",
        *{"&": ["&amp;"], "<": ["&lt;"], ">": ["&gt;"], '"': ["&quot;"], " ": [r"\+"]}.get(part, []),
    ]
    return f"(?i:{'|'.join(spellings)})"
