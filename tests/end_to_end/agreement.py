"""Wait until Kafka and the monitor describe groups in the same way, and report the differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tests.end_to_end.group_description import GroupDescription, ShownGroups, differences
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.monitor_process import MonitorProcess

_TIMEOUT_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Expected:
    """The state that a group must reach before it is compared: its type in Kafka and its number of members."""

    group_type: str
    members: int


@dataclass(frozen=True)
class Agreement:
    """Compares Kafka's descriptions of groups with the monitor's."""

    java: JavaClients
    monitor: MonitorProcess

    def describe(self, group_id: str) -> GroupDescription:
        """Return Kafka's description of a classic or consumer group."""
        return self.java.describe("consumer", [group_id])[group_id]

    def until_agreed(self, expected: Mapping[str, Expected]) -> None:
        """Wait until Kafka and the monitor both show each group settled as expected."""
        pending = dict(expected)

        def find_differences() -> list[str]:
            shown, described = ShownGroups.now(self.monitor), self._describe_all(pending)
            by_group = {
                group_id: unsettled_reasons(described[group_id], wanted)
                or differences(described[group_id], shown, group_id)
                for group_id, wanted in pending.items()
            }
            for group_id in [group_id for group_id, differing in by_group.items() if not differing]:
                del pending[group_id]
            return [f"{group_id}: {each}" for group_id, differing in by_group.items() for each in differing]

        _wait_until_none(find_differences)

    def until_agreed_as_it_is(self, group_id: str, apart_from: Collection[str] = ()) -> None:
        """Wait until the monitor describes a classic or consumer group as Kafka does, settled or not.

        `apart_from` names fields of members that are not compared.
        """

        def find_differences() -> list[str]:
            return differences(self.describe(group_id), ShownGroups.now(self.monitor), group_id, apart_from)

        _wait_until_none(find_differences)

    def until_commits_agree(self, group_id: str) -> dict[tuple[str, int], int]:
        """Wait until /metrics has exactly the offsets that Kafka lists. Return them."""
        agreed: dict[tuple[str, int], int] = {}

        def find_differences() -> list[str]:
            listed, shown = self.java.commits(group_id), ShownGroups.now(self.monitor).commits(group_id)
            agreed.clear()
            agreed.update(listed)
            return [] if shown == listed else [f"{group_id}: Kafka has commits {listed}, the monitor shows {shown}"]

        _wait_until_none(find_differences)
        return agreed

    def _describe_all(self, expected: Mapping[str, Expected]) -> dict[str, GroupDescription]:
        described: dict[str, GroupDescription] = {}
        for group_type in {wanted.group_type for wanted in expected.values()}:
            of_type = [group_id for group_id, wanted in expected.items() if wanted.group_type == group_type]
            described |= self.java.describe(group_type, of_type)
        return described


def unsettled_reasons(described: GroupDescription, expected: Expected) -> list[str]:
    """Return the reason why a group cannot be compared yet; empty if it can."""
    settled = described.settled(expected.members) and described.group_type == expected.group_type
    return [] if settled else [f"Kafka describes {described}, not settled as {expected}"]


def _wait_until_none(find_differences: Callable[[], list[str]]) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while differing := find_differences():
        if time.monotonic() > deadline:
            raise AssertionError("\n".join([f"after {_TIMEOUT_SECONDS:g} s:", *differing]))
        time.sleep(_PAUSE_SECONDS)
