"""A group as Kafka's admin API describes it and as the monitor shows it, in one shape, so that they can be compared."""

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
    """One member. None is what its protocol has not, or what the admin API does not tell."""

    client_id: str
    client_host: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int | None = None
    assignment: TopicPartitions | None = None
    target: TopicPartitions | None = None


@dataclass(frozen=True)
class GroupDescription:
    """One group. A group that is not there is Dead."""

    group_type: str
    state: str
    epoch: int | None = None
    assignment_epoch: int | None = None
    assignor: str | None = None
    members: Mapping[str, MemberDescription] = field(default_factory=dict)

    def settled(self, members: int) -> bool:
        """Whether it has so many members and nothing is under way any more."""
        targets_reached = all(member.target in (None, member.assignment) for member in self.members.values())
        return self.state == ("Stable" if members else "Empty") and len(self.members) == members and targets_reached


def of_kafka(group_type: str, described: Mapping[str, Any]) -> GroupDescription:
    """What Java's Admin answers, as its fields are named. `group_type` where the answer is of one type only."""
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
    """None for the tasks of a streams member, too: they name a subtopology, which stands for several topics."""
    if assignment is None or "topicPartitions" not in assignment:
        return None
    return frozenset((at["topic"], at["partition"]) for at in assignment["topicPartitions"])


@dataclass(frozen=True)
class MonitorShows:
    """What the monitor says of all groups at one moment: the latest row of each in its table, and one scrape."""

    rows: Mapping[str, Mapping[str, Any]]
    metrics: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]

    @classmethod
    def now(cls, monitor: MonitorProcess) -> MonitorShows:
        """Read both."""
        rows = sorted(monitor.rows("group_generations"), key=lambda row: row["offsets_topic_offset"])
        return cls({str(row["group_id"]): row for row in rows}, monitor.metrics())

    def group(self, group_id: str) -> GroupDescription | None:
        """The group by the table's latest row; None before its first."""
        if group_id not in self.rows:
            return None
        row = self.rows[group_id]
        members = {member["member_id"]: _shown_member(member) for member in row["members"] or ()}
        epochs = row["generation_id"], row["assignment_epoch"]
        return GroupDescription(row["group_type"], row["state"], *epochs, row["protocol"], members)

    def labels(self, metric: str, group_id: str) -> list[dict[str, str]]:
        """The labels of a metric's samples of one group."""
        found = [dict(sample) for sample in self.metrics.get(metric, {})]
        return [labels for labels in found if labels["group"] == group_id]

    def value(self, metric: str, group_id: str) -> float | None:
        """A metric with one sample a group."""
        samples = self.metrics.get(metric, {}).items()
        return next((value for sample, value in samples if dict(sample)["group"] == group_id), None)

    def commits(self, group_id: str) -> dict[tuple[str, int], int]:
        """Committed offsets by (topic, partition), from /metrics."""
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


def _shown_partitions(held: Iterable[Mapping[str, Any]] | None) -> TopicPartitions | None:
    return None if held is None else frozenset((at["topic"], at["partition"]) for at in held)


def differences(
    theirs: GroupDescription, shown: MonitorShows, group_id: str, apart_from: Collection[str] = ()
) -> list[str]:
    """Where the monitor says something else than Kafka; what Kafka's API does not tell is not compared.

    Nor are the fields of members that `apart_from` names.
    """
    ours = shown.group(group_id)
    if ours is None:
        return ["not in group_generations"]
    reported = ["group_type", "epoch", "assignment_epoch"]
    if not (theirs.group_type == STREAMS and theirs.members and ours.state == UNKNOWN):
        reported.append(
            "state"
        )  # A streams group's rests on things that are in no record; /metrics has what is listed.
    if theirs.group_type == CLASSIC or ours.assignor is not None:
        reported.append(
            "assignor"
        )  # Where no member of a consumer group names one, the broker's default is in no record.
    found = _field_differences("it", theirs, ours, reported)
    if set(theirs.members) != set(ours.members):
        found.append(f"Kafka has members {sorted(theirs.members)}, shown are {sorted(ours.members)}")
    for member_id in set(theirs.members) & set(ours.members):
        names = [each.name for each in fields(MemberDescription) if each.name not in apart_from]
        found += _field_differences(member_id, theirs.members[member_id], ours.members[member_id], names)
    return found + _metric_differences(theirs, ours, shown, group_id)


def _field_differences(where: str, theirs: object, ours: object, names: Iterable[str]) -> list[str]:
    pairs = [(name, getattr(theirs, name), getattr(ours, name)) for name in names]
    return [f"{where}: {name} is {said!r}, shown is {ours!r}" for name, said, ours in pairs if said not in (None, ours)]


def _metric_differences(
    theirs: GroupDescription, ours: GroupDescription, shown: MonitorShows, group_id: str
) -> list[str]:
    states = shown.labels("rebalance_monitor_group_state", group_id)
    shown_states = [(labels["group_type"], labels["state"]) for labels in states]
    wanted = {
        "state": ([(theirs.group_type, theirs.state)], shown_states),
        "generation": (ours.epoch, shown.value("rebalance_monitor_group_generation", group_id)),
        "members": (len(theirs.members), shown.value("rebalance_monitor_group_members", group_id)),
    }
    return [f"/metrics {what} is {ours!r}, not {said!r}" for what, (said, ours) in wanted.items() if said != ours]
