"""Values as HTML. What others named is spelled out (`printable`), then escaped, whatever a template forgets.

Pages hold no script and no style of their own, so the strictest policy does: a name that were taken for markup all the
same could load nothing and run nothing.
"""

from __future__ import annotations

from datetime import datetime, timezone
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streaming.group.printable import in_ranges, printable
from streaming.page.addresses import GROUP_API, group_address, overview_address
from streaming.page.expected import verdict_in_words

UNKNOWN = "?"


def page(template: str, **values: Any) -> bytes:  # noqa: ANN401 - whatever a template shows
    """Render one page as UTF-8."""
    return _ENVIRONMENT.get_template(template).render(values).encode()


def _fit_for_a_page(value: object) -> object:
    if value is None:
        return UNKNOWN
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def whole(number: float | None) -> str:
    """A number with separators, or the sign of the unknown.

    >>> whole(1234567), whole(None), whole(0)
    ('1,234,567', '?', '0')
    """
    return UNKNOWN if number is None else f"{number:,.0f}"


def amount(number: float | None) -> str:
    """A number that may be small and broken, to its first decimal.

    >>> amount(1234.5), amount(12), amount(0.25), amount(None)
    ('1,234', '12', '0.2', '?')
    """
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def duration(seconds: float | None) -> str:
    """A time span in its two greatest units.

    >>> [duration(span) for span in (0.4, 59, 61, 7_380, 200_000, None)]
    ['0.4 s', '59 s', '1 min 1 s', '2 h 3 min', '2 d 7 h', '?']
    """
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    rest, units = round(seconds), []
    for unit, of_unit in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, of_unit)
        units += [f"{count} {unit}"] if count else []
    return " ".join(units[:2])


def utc(timestamp_ms: int | None) -> str:
    """A time in UTC, to the second; one that no calendar has as its number.

    >>> utc(0), utc(None), utc(10**18)
    ('1970-01-01 00:00:00', '?', '1000000000000000000 ms')
    """
    if timestamp_ms is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{timestamp_ms} ms"


def asset(name: str) -> bytes:
    """A file the pages need. The style's address has its digest, so that a browser may keep it until it changes."""
    return files("streaming.page").joinpath("assets").joinpath(name).read_bytes()


def api_address(group_id: str, cluster: str | None = None) -> str:
    """Where a group's JSON is."""
    return group_address(group_id, GROUP_API, cluster)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streaming.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_fit_for_a_page,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style_address"] = f"/style.css?{sha256(asset('style.css')).hexdigest()[:12]}"
    environment.filters.update(
        whole=whole,
        amount=amount,
        duration=duration,
        utc=utc,
        group_address=group_address,
        overview_address=overview_address,
        api_address=api_address,
        verdict=verdict_in_words,
        in_ranges=in_ranges,
    )
    return environment


_ENVIRONMENT = _environment()
