"""The lines that `run` logs once about a cluster: facts, unknown values and next steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming.doctor.permissions import Permissions, missing_permissions
from streaming.evaluation.phrases import counted
from streaming.events import SHARE, STREAMS
from streaming.group.listing import GroupListing, Unanswered


@dataclass(frozen=True, slots=True)
class FirstSample:
    """The facts after the first sample. `not_known` names the information that the source does not provide."""

    brokers: int | None
    kafka_version: str
    listing: GroupListing
    permissions: Permissions
    not_known: Sequence[str]
    page: str


def first_run_lines(first: FirstSample) -> Iterator[str]:
    """Return the lines."""
    brokers = "an unknown number of brokers" if first.brokers is None else counted(first.brokers, "broker")
    yield f"found {brokers} (Kafka {first.kafka_version}) and {_groups(first.listing)}"
    yield _permissions(first.permissions)
    if unknown := list(_unknown(first)):
        yield f"unknown: {'; '.join(unknown)}"
    yield (
        f"open {first.page} to see the groups. Next steps: configure Prometheus to scrape /metrics and to load"
        " dashboards/rules. To see which steps are missing, run `rebalance-monitor doctor`"
    )


def _groups(listing: GroupListing) -> str:
    by_type = Counter(group.group_type or "unknown type" for group in listing.groups.values())
    counts = ", ".join(f"{count} {group_type}" for group_type, count in by_type.most_common())
    total = counted(len(listing.groups), "group")
    incomplete = "; the list of groups is incomplete" if listing.gaps else ""
    return f"{total}{f' ({counts})' if counts else ''}{incomplete}"


def _permissions(permissions: Permissions) -> str:
    missing = [
        f"{permission.text}{' (optional)' if permission.is_optional else ''}"
        for permission in missing_permissions(permissions)
    ]
    unknown = [permission.text for permission, answer in permissions.items() if isinstance(answer, Unanswered)]
    parts = [f"missing permissions: {', '.join(missing)}"] if missing else []
    parts += [f"permissions that could not be checked: {', '.join(unknown)}"] if unknown else []
    return "; ".join(parts) or "no permission is missing"


def _unknown(first: FirstSample) -> Iterator[str]:
    yield from (permission.unknown for permission in missing_permissions(first.permissions))
    if first.not_known:
        yield (
            "information that the brokers do not return:"
            f" {', '.join(word.replace('_', ' ') for word in first.not_known)}"
        )
    types = {group.group_type for group in first.listing.groups.values()}
    if not_evaluated := [group_type for group_type in (SHARE, STREAMS) if group_type in types]:
        yield f"whether the assignment of {' and '.join(not_evaluated)} groups is fair"
