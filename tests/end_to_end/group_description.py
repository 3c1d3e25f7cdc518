"""Compare a group as Kafka's admin API describes it with the same group as the monitor shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from streaming.events import CLASSIC, STREAMS
from streaming.group.snapshot import UNKNOWN
from tests.end_to_end.monitor_process import MonitorProcess

TopicPartitions = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class MemberDescription:
    """One member. A field is None if its protocol does not have it or the admin API does not return it."""

    client_id: str
    client_host: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int | None = None
    assignment: TopicPartitions | None = None
    target: TopicPartitions | None = None


@dataclass(frozen=True)
class GroupDescription:
    """One group. A group that does not exist has the state Dead."""

    group_type: str
    state: str
    epoch: int | None = None
    assignment_epoch: int | None = None
    assignor: str | None = None
    members: Mapping[str, MemberDescription] = field(default_factory=dict)

    def settled(self, members: int) -> bool:
        """Return whether the group has this number of members and no rebalance is in progress."""
        targets_reached = all(member.target in (None, member.assignment) for member in self.members.values())
        return self.state == ("Stable" if members else "Empty") and len(self.members) == members and targets_reached


def of_kafka(group_type: str, described: Mapping[str, Any]) -> GroupDescription:
    """Convert an answer of Java's Admin. `group_type` is the type if the answer does not contain it."""
    return GroupDescription(
        described.get("type", group_type).lower(),
        "".join(word.title() for word in described["groupState"].split("_")),
        described["groupEpoch"],
        described["targetAssignmentEpoch"],
        described.get("partitionAssignor") or None,
        {member["memberId"]: _described_member(member) for member in described["members"]},
    )


def _described_member(member: Mapping[str, Any]) -> MemberDescription:
    return MemberDescription(
        member["clientId"],
        member.get("host") or member["clientHost"],
        member.get("groupInstanceId") or member.get("instanceId"),
        member["rackId"],
        member["memberEpoch"],
        _described_partitions(member["assignment"]),
        _described_partitions(member.get("targetAssignment")),
    )


def _described_partitions(assignment: Mapping[str, Any] | None) -> TopicPartitions | None:
    """Convert an assignment. Return None for tasks of a streams member: a subtopology can have several topics."""
    if assignment is None or "topicPartitions" not in assignment:
        return None
    return frozenset((at["topic"], at["partition"]) for at in assignment["topicPartitions"])


@dataclass(frozen=True)
class ShownGroups:
    """The monitor's output for all groups at one moment: the latest row of each in its table, and one scrape."""

    rows: Mapping[str, Mapping[str, Any]]
    metrics: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]

    @classmethod
    def now(cls, monitor: MonitorProcess) -> ShownGroups:
        """Read the table and scrape the metrics."""
        rows = sorted(monitor.rows("group_generations"), key=lambda row: row["offsets_topic_offset"])
        return cls({str(row["group_id"]): row for row in rows}, monitor.metrics())

    def group(self, group_id: str) -> GroupDescription | None:
        """Return the group by the table's latest row; None if it has no row yet."""
        if group_id not in self.rows:
            return None
        row = self.rows[group_id]
        members = {member["member_id"]: _shown_member(member) for member in row["members"] or ()}
        epochs = row["generation_id"], row["assignment_epoch"]
        return GroupDescription(row["group_type"], row["state"], *epochs, row["protocol"], members)

    def labels(self, metric: str, group_id: str) -> list[dict[str, str]]:
        """Return the labels of a metric's samples of one group."""
        all_labels = [dict(sample) for sample in self.metrics.get(metric, {})]
        return [labels for labels in all_labels if labels["group"] == group_id]

    def value(self, metric: str, group_id: str) -> float | None:
        """Return the value of a metric that has one sample per group."""
        samples = self.metrics.get(metric, {}).items()
        return next((value for sample, value in samples if dict(sample)["group"] == group_id), None)

    def commits(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return committed offsets by (topic, partition), from /metrics."""
        shown = self.metrics.get("kafka_consumergroup_current_offset", {}).items()
        of_group = [(dict(sample), value) for sample, value in shown if dict(sample)["consumergroup"] == group_id]
        return {(labels["topic"], int(labels["partition"])): int(value) for labels, value in of_group}


def _shown_member(member: Mapping[str, Any]) -> MemberDescription:
    return MemberDescription(
        member["client_id"],
        member["client_host"],
        member["group_instance_id"],
        member["rack_id"],
        member["member_epoch"],
        _shown_partitions(member["assignment"]),
        _shown_partitions(member["target"]),
    )


def _shown_partitions(owned: Iterable[Mapping[str, Any]] | None) -> TopicPartitions | None:
    return None if owned is None else frozenset((at["topic"], at["partition"]) for at in owned)


def differences(
    theirs: GroupDescription, shown: ShownGroups, group_id: str, apart_from: Collection[str] = ()
) -> list[str]:
    """Return the differences between the monitor and Kafka.

    Two kinds of fields are not compared: those that Kafka's API does not return, and the fields of members that
    `apart_from` names.
    """
    ours = shown.group(group_id)
    if ours is None:
        return ["not in group_generations"]
    compared = ["group_type", "epoch", "assignment_epoch"]
    # The state of a streams group depends on facts that are in no record. /metrics has the state that the broker lists.
    if not (theirs.group_type == STREAMS and theirs.members and ours.state == UNKNOWN):
        compared.append("state")
    # If no member of a consumer group names an assignor, the broker uses its default, which is in no record.
    if theirs.group_type == CLASSIC or ours.assignor is not None:
        compared.append("assignor")
    differing = _field_differences("group", theirs, ours, compared)
    if set(theirs.members) != set(ours.members):
        differing.append(f"Kafka has members {sorted(theirs.members)}, the monitor shows {sorted(ours.members)}")
    for member_id in set(theirs.members) & set(ours.members):
        names = [each.name for each in fields(MemberDescription) if each.name not in apart_from]
        differing += _field_differences(member_id, theirs.members[member_id], ours.members[member_id], names)
    return differing + _metric_differences(theirs, ours, shown, group_id)


def _field_differences(where: str, theirs: object, ours: object, names: Iterable[str]) -> list[str]:
    values = [(name, getattr(theirs, name), getattr(ours, name)) for name in names]
    return [
        f"{where}: {name} is {in_kafka!r}, the monitor shows {shown!r}"
        for name, in_kafka, shown in values
        if in_kafka not in (None, shown)
    ]


def _metric_differences(
    theirs: GroupDescription, ours: GroupDescription, shown: ShownGroups, group_id: str
) -> list[str]:
    states = shown.labels("rebalance_monitor_group_info", group_id)
    shown_states = [(labels["group_type"], labels["state"]) for labels in states]
    wanted = {
        "state": ([(theirs.group_type, theirs.state)], shown_states),
        "generation": (ours.epoch, shown.value("rebalance_monitor_group_generation", group_id)),
        "members": (len(theirs.members), shown.value("rebalance_monitor_group_members", group_id)),
    }
    return [
        f"/metrics {name} is {in_metrics!r}, not {expected!r}"
        for name, (expected, in_metrics) in wanted.items()
        if expected != in_metrics
    ]
