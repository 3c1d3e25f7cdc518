"""The shapes of a picture. All positions and sizes are in the units of the picture's view box."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

CHARACTER_WIDTH = 7.2
"""Estimated width of a character in the picture. Wide characters (for example Chinese) are twice as wide.

The browser draws a combining mark above the previous character. But the estimate counts combining marks, so that a
name with many combining marks is also shortened.
"""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle. `css` contains the CSS classes. Browsers show `title` while the pointer is on the rectangle."""

    kind: ClassVar[str] = "rect"
    x: float
    y: float
    width: float
    height: float
    css: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through two or more points."""

    kind: ClassVar[str] = "line"
    points: tuple[tuple[float, float], ...]
    css: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text. `anchor` is `start`, `middle` or `end`."""

    kind: ClassVar[str] = "text"
    x: float
    y: float
    text: str
    css: str
    anchor: str = "start"
    title: str = ""


Shape = Rect | Line | Text


@dataclass(frozen=True, slots=True)
class Picture:
    """The shapes of a timeline, in the order of drawing. Each picture of a page has a different `name`.

    The browser cuts off row names at `names_width`. If it is 0, the names are above the rows.
    """

    name: str
    width: float
    height: float
    names_width: float
    shapes: tuple[Shape, ...]


def text_width(text: str) -> float:
    """Return the estimated width of a text.

    >>> text_width("ab") == text_width("グ")
    True
    """
    return CHARACTER_WIDTH * sum(_cells(character) for character in text)


def shorten(text: str, width: float) -> str:
    """If a text is wider than `width`, replace its middle with an ellipsis: names differ at the start or the end.

    >>> shorten("billing-service-7f9c@10.4.5.98", 100), shorten("app", 100)
    ('billin…4.5.98', 'app')
    """
    if text_width(text) <= width:
        return text
    kept = max(0, int(width / CHARACTER_WIDTH) - 1)
    head, tail = _take(text, kept - kept // 2), _take(text[::-1], kept // 2)[::-1]
    return f"{head}…{tail}"


def _take(text: str, cells: int) -> str:
    taken = 0
    for length, character in enumerate(text):
        taken += _cells(character)
        if taken > cells:
            return text[:length]
    return text


def _cells(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
