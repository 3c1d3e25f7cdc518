"""Checks the query parameters `at`, `from` and `to`, which select the past.

1. `at` is allowed for the list of groups and for one group. `from` and `to` are allowed for one group, but only
   together and without `at`.
2. The pages and documents of topics, hosts, incidents and events always show the present. For these addresses, the
   monitor refuses `at`, `from` and `to`.
3. An empty parameter counts as missing. Other addresses (style sheet, probes) ignore the parameters.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from streaming.page.addresses import GROUP_API, GROUP_PAGE, HOST_PAGE, TOPIC_PAGE

AT, FROM, TO = "at", "from", "to"
PARAMETERS: Final = (AT, FROM, TO)
LISTS: Final = ("/", "/api/v1/groups")
_WITHOUT_PAST: Final = ("/incidents", "/api/v1/incidents", "/api/v1/events")


def group_prefix(path: str) -> str | None:
    """Return the part of the path before the group id. Return None if the path does not belong to a group."""
    return next((prefix for prefix in (GROUP_API, GROUP_PAGE) if path.startswith(prefix)), None)


def has_past(path: str) -> bool:
    """Return True if `at` is allowed for the path (rule 1)."""
    return path in LISTS or group_prefix(path) is not None


def is_answerable(path: str) -> bool:
    """Return True if the monitor checks `at`, `from` and `to` for the path. Other paths ignore them (rule 3).

    >>> [is_answerable(path) for path in ("/", "/groups/a", "/topics/a", "/incidents/0a", "/style.css")]
    [True, True, True, True, False]
    """
    return has_past(path) or _is_without_past(path)


def refusal(path: str, given: Collection[str]) -> str | None:
    """Return the reason why `at`, `from` or `to` is not allowed for a path, or None.

    >>> refusal("/groups/a", [FROM]), refusal("/groups/a", [FROM, TO])
    ('a comparison needs both `from` and `to`', None)
    """
    if _is_without_past(path):
        names = " and ".join(f"`{name}`" for name in given)
        return f"this address does not show the past, so it cannot be used with {names}"
    if path in LISTS:
        return "`from` and `to` can only be used for one group" if {FROM, TO} & {*given} else None
    if AT in given and len(given) > 1:
        return "`at` cannot be used together with `from` and `to`"
    return "a comparison needs both `from` and `to`" if len(given) == 1 and AT not in given else None


def _is_without_past(path: str) -> bool:
    is_place = path.startswith((TOPIC_PAGE, HOST_PAGE))
    return is_place or any(path == one or path.startswith(f"{one}/") for one in _WITHOUT_PAST)
