"""Reads a group at one time: from Kafka, and from the monitor's /metrics, API and tables."""

from __future__ import annotations

import json
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deltalake import DeltaTable

from tests.clients.recount import Generation, Partition, Share
from tests.clients.scenario import LiveGroup
from tests.clients.stage import Stage
from tests.end_to_end.group_description import GroupDescription, ShownGroups
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, samples

Row = Mapping[str, Any]
Position = tuple[int, int]
"""The partition of `__consumer_offsets`, and the offset."""

_TABLES = ("group_generations", "rebalances", "assignment_drift", "group_lag")


@dataclass(frozen=True)
class KafkaState:
    """The responses of Kafka's Admin for a group. Subscriptions are those with which the members were started."""

    described: GroupDescription
    generation: Generation
    commits: Mapping[Partition, int]
    ends: Mapping[Partition, int]

    @classmethod
    def read(cls, groups: Sequence[LiveGroup], stage: Stage, admin: KafkaReference) -> dict[str, KafkaState]:
        """Read the state of some groups from Kafka. Commits are read before end offsets, so no lag is negative."""
        described = stage.describe([group.plan.name for group in groups])
        commits = {group.plan.name: stage.java.commits(group.plan.name) for group in groups}
        ends = admin.ends(sorted({at for of_group in commits.values() for at in of_group}))
        return {
            name: cls(described[name], _generation(group, described[name]), commits[name], ends)
            for group in groups
            for name in [group.plan.name]
        }

    def member_keys(self) -> dict[str, str]:
        """Map member ids to the key that stays the same after a restart: the instance id, or else the member id."""
        return {member_id: one.group_instance_id or member_id for member_id, one in self.described.members.items()}


def _generation(group: LiveGroup, described: GroupDescription) -> Generation:
    topics = group.subscriptions()
    shares = {
        member.group_instance_id or member_id: Share(
            frozenset(topics.get(member.client_id, ())), member.assignment or frozenset()
        )
        for member_id, member in described.members.items()
    }
    return Generation(described.assignor, shares)


@dataclass(frozen=True)
class MonitorOutput:
    """The values that the monitor shows of a group."""

    shows: ShownGroups
    api: Mapping[str, Any]
    tables: Mapping[str, Sequence[Row]]

    @cached_property
    def generations(self) -> dict[Position, Generation]:
        """Return the rows of `group_generations`, by the position of their record."""
        return {position(row): _generation_of_row(row) for row in self.tables["group_generations"]}

    @property
    def rebalances(self) -> Sequence[Row]:
        """Return the rows of `rebalances`, in the order of their records."""
        return self.tables["rebalances"]

    def own_verdict(self) -> Row | None:
        """Return the last row of `assignment_drift` for the group's own strategy."""
        own = [row for row in self.tables["assignment_drift"] if row["is_group_strategy"]]
        return own[-1] if own else None

    def by_partition(self, metric: str) -> dict[Partition, int]:
        """Return a metric of the group, by partition."""
        found = [(dict(labels), value) for labels, value in self.shows.metrics.get(metric, {}).items()]
        name = self.api["group_id"]
        return {
            (labels["topic"], int(labels["partition"])): int(value)
            for labels, value in found
            if labels["consumergroup"] == name
        }

    def last_lags(self) -> dict[Partition, int | None]:
        """Return the last lag of each partition in the table `group_lag`."""
        return {(row["topic"], row["partition"]): row["lag"] for row in self.tables["group_lag"]}


def read_monitor(monitor: MonitorProcess, group_ids: Collection[str]) -> dict[str, MonitorOutput]:
    """Read the monitor's output for some groups. Groups that the monitor does not know yet are missing."""
    metrics = samples(_lines_about(group_ids, monitor.scrape()))
    tables = {table: _rows_by_group(monitor, table, group_ids) for table in _TABLES}
    shown = {}
    for group_id in group_ids:
        api = _api(monitor, group_id)
        of_group = {table: rows[group_id] for table, rows in tables.items()}
        if api is not None and of_group["group_generations"]:
            shows = ShownGroups({group_id: of_group["group_generations"][-1]}, metrics)
            shown[group_id] = MonitorOutput(shows, api, of_group)
    return shown


def position(row: Row) -> Position:
    """Return the position of a row's record."""
    return row["offsets_topic_partition"], row["offsets_topic_offset"]


def _generation_of_row(row: Row) -> Generation:
    shares = {}
    for member in row["members"] or ():
        held = member["assignment"] if member["target"] is None else member["target"]
        shares[member["group_instance_id"] or member["member_id"]] = Share(
            frozenset(member["subscription"] or ()), _partitions(held), _partitions(member["owned"])
        )
    return Generation(row["protocol"], shares)


def _partitions(named: Sequence[Row] | None) -> frozenset[Partition]:
    return frozenset((at["topic"], at["partition"]) for at in named or ())


def _lines_about(group_ids: Collection[str], text: str) -> str:
    """Return the lines of some groups. Most lines belong to groups of earlier waves, and parsing them is slow."""
    return "\n".join(
        line for line in text.splitlines() if line.startswith("#") or any(group_id in line for group_id in group_ids)
    )


def _rows_by_group(monitor: MonitorProcess, table: str, group_ids: Collection[str]) -> Mapping[str, list[Row]]:
    stored = DeltaTable(str(monitor.folder / "tables" / table))
    rows = stored.to_pyarrow_table(filters=[("group_id", "in", list(group_ids))]).to_pylist()
    order = ("sampled_time",) if table == "group_lag" else ("offsets_topic_partition", "offsets_topic_offset")
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: tuple(row[name] for name in order)):
        found[row["group_id"]].append(row)
    return found


def _api(monitor: MonitorProcess, group_id: str) -> Mapping[str, Any] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}/api/v1/groups/{group_id}", timeout=30) as answer:
            found: Mapping[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
