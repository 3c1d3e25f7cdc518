"""Waiting until Kafka and the monitor say the same of some groups, and telling where they do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from tests.end_to_end.group_description import GroupDescription, MonitorShows, differences
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.monitor_process import MonitorProcess

_TIMEOUT_SECONDS = 120.0
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Expected:
    """How a group is to be seen before it is compared: its type in Kafka, and how many members it has settled with."""

    group_type: str
    members: int


@dataclass(frozen=True)
class Agreement:
    """Kafka's word on one side, the monitor's on the other."""

    java: JavaClients
    monitor: MonitorProcess

    def describe(self, group_id: str) -> GroupDescription:
        """Kafka's word on a classic or consumer group."""
        return self.java.describe("consumer", [group_id])[group_id]

    def until_agreed(self, expected: Mapping[str, Expected]) -> None:
        """Wait until Kafka calls each group settled as expected and the monitor says the same of it."""
        left = dict(expected)

        def found() -> list[str]:
            shown, described = MonitorShows.now(self.monitor), self._describe_all(left)
            differing = {
                group_id: unsettled(described[group_id], wanted) or differences(described[group_id], shown, group_id)
                for group_id, wanted in left.items()
            }
            for group_id in [group_id for group_id, found in differing.items() if not found]:
                del left[group_id]
            return [f"{group_id}: {each}" for group_id, found in differing.items() for each in found]

        _until_none(found)

    def until_agreed_as_it_is(self, group_id: str, apart_from: Collection[str] = ()) -> None:
        """Wait until the monitor says the same of a classic or consumer group, settled or not.

        `apart_from` names fields of members that are not compared.
        """

        def found() -> list[str]:
            return differences(self.describe(group_id), MonitorShows.now(self.monitor), group_id, apart_from)

        _until_none(found)

    def until_commits_agree(self, group_id: str) -> dict[tuple[str, int], int]:
        """Wait until /metrics has just the offsets that Kafka lists; returns them."""
        agreed: dict[tuple[str, int], int] = {}

        def found() -> list[str]:
            listed, shown = self.java.commits(group_id), MonitorShows.now(self.monitor).commits(group_id)
            agreed.clear()
            agreed.update(listed)
            return [] if shown == listed else [f"{group_id}: Kafka has commits {listed}, shown are {shown}"]

        _until_none(found)
        return agreed

    def _describe_all(self, expected: Mapping[str, Expected]) -> dict[str, GroupDescription]:
        described: dict[str, GroupDescription] = {}
        for group_type in {wanted.group_type for wanted in expected.values()}:
            of_type = [group_id for group_id, wanted in expected.items() if wanted.group_type == group_type]
            described |= self.java.describe(group_type, of_type)
        return described


def unsettled(described: GroupDescription, expected: Expected) -> list[str]:
    """Why a group can't be compared yet."""
    settled = described.settled(expected.members) and described.group_type == expected.group_type
    return [] if settled else [f"Kafka says {described}, not settled as {expected}"]


def _until_none(differing: Callable[[], list[str]]) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while found := differing():
        if time.monotonic() > deadline:
            raise AssertionError("\n".join([f"after {_TIMEOUT_SECONDS:g} s:", *found]))
        time.sleep(_PAUSE_SECONDS)
