"""Renders values as HTML. Every template makes each text printable (`printable`) and then escapes it.

The pages contain no scripts and no inline styles, and the content security policy forbids both. So even if a name
contains HTML and the escaping fails, the browser loads and runs nothing.
"""

from __future__ import annotations

from datetime import datetime, timezone
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from streaming.evaluation.incidents.story import headline
from streaming.group.members import host_name
from streaming.group.printable import printable
from streaming.page.addresses import (
    GROUP_API,
    group_address,
    host_address,
    overview_address,
    parse_address,
    topic_address,
)
from streaming.page.drift_words import verdict_in_words
from streaming.page.finding.search import found_names
from streaming.page.links.grafana import group_dashboard, group_dashboard_between, topic_dashboard
from streaming.page.links.runbook import runbook_link, section_link
from streaming.past.moments import format_moment

UNKNOWN = "?"


def page(template: str, **values: Any) -> bytes:  # noqa: ANN401 - templates accept all types
    """Render one page as UTF-8."""
    return _ENVIRONMENT.get_template(template).render(values).encode()


def _make_printable(value: object) -> object:
    """Convert None to `?`, and text to printable text. Jinja calls the function for each value before the escaping."""
    if value is None:
        return UNKNOWN
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def whole(number: float | None) -> str:
    """Format a number without decimals and with thousands separators. None becomes `?`.

    >>> whole(1234567), whole(None), whole(0)
    ('1,234,567', '?', '0')
    """
    return UNKNOWN if number is None else f"{number:,.0f}"


def amount(number: float | None) -> str:
    """Format a number. Numbers below 100 have one decimal if they are not integers. None becomes `?`.

    >>> amount(1234.5), amount(12), amount(0.25), amount(None)
    ('1,234', '12', '0.2', '?')
    """
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def duration(seconds: float | None) -> str:
    """Format a time span with its two largest units. None becomes `?`.

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


def catch_up(
    records: int | None, consumed: float | None, produced: float | None, catch_up_seconds: float | None
) -> str:
    """Describe the time until a group has no lag. The result is `?` if the lag or a rate is unknown.

    >>> catch_up(0, 5.0, 5.0, None), catch_up(90, 5.0, 9.0, None), catch_up(90, None, 9.0, None), catch_up(90, 9, 6, 30)
    ('no lag', 'the lag does not shrink', '?', '30 s')
    """
    if records == 0:
        return "no lag"
    if catch_up_seconds is None and records is not None and consumed is not None and produced is not None:
        return "the lag does not shrink"
    return duration(catch_up_seconds)


def utc(timestamp_ms: int | None) -> str:
    """Format a time in UTC. If Python's calendar does not contain the time, return the milliseconds.

    >>> utc(0), utc(None), utc(10**18)
    ('1970-01-01 00:00:00', '?', '1000000000000000000 ms')
    """
    if timestamp_ms is None:
        return UNKNOWN
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{timestamp_ms} ms"


def utc_text(timestamp_ms: int) -> str:
    """Format a time with its time zone, for use in a sentence."""
    return f"{utc(timestamp_ms)} UTC"


def asset(name: str) -> bytes:
    """Read a file from the folder `assets`."""
    return files("streaming.page").joinpath("assets").joinpath(name).read_bytes()


def plain(number: float) -> str:
    """Format a coordinate of an SVG picture with at most one decimal.

    >>> plain(12.0), plain(0.04), plain(7.25)
    ('12', '0', '7.2')
    """
    return f"{number:.1f}".removesuffix(".0")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("streaming.page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Browsers cache the style sheet. With a digest in its address, browsers load the style sheet again after a change.
    environment.globals["style_address"] = f"/style.css?{sha256(asset('style.css')).hexdigest()[:12]}"
    environment.filters.update(
        whole=whole,
        amount=amount,
        duration=duration,
        catch_up=catch_up,
        utc=utc,
        plain=plain,
        headline=headline,
        found_names=found_names,
        host_name=host_name,
        parse_address=parse_address,
        group_address=group_address,
        topic_address=topic_address,
        host_address=host_address,
        overview_address=overview_address,
        group_dashboard=group_dashboard,
        group_dashboard_between=group_dashboard_between,
        topic_dashboard=topic_dashboard,
        section_link=lambda section, links: section_link(links, section),
        runbook_link=lambda trouble, links: runbook_link(links, trouble),
        api_address=lambda group_id, cluster: group_address(group_id, GROUP_API, cluster),
        verdict=verdict_in_words,
        moment=format_moment,
    )
    return environment


_ENVIRONMENT = _environment()
