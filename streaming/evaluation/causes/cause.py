"""The cause of a group's lag: its kind, its evidence, and the sentence that all outputs show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from streaming.evaluation.phrases import counted, in_words, rate_number
from streaming.group.members import host_name

Kind = Literal[
    "rebalancing", "stopped", "hot_partition", "assignment", "slow_member", "slow_host", "under_provisioned", "unknown"
]
"""The kinds, in the order of the rules (`cause_of_lag.py`)."""
REBALANCING: Final = "rebalancing"
STOPPED: Final = "stopped"
HOT_PARTITION: Final = "hot_partition"
ASSIGNMENT: Final = "assignment"
SLOW_MEMBER: Final = "slow_member"
SLOW_HOST: Final = "slow_host"
UNDER_PROVISIONED: Final = "under_provisioned"
UNKNOWN: Final = "unknown"

OPEN_TRANSACTION: Final = "open_transaction"
CATCHING_UP: Final = "catching_up"
OWNERS_UNKNOWN: Final = "owners_unknown"
RATES_UNKNOWN: Final = "rates_unknown"
NO_RULE: Final = "no_rule"
"""Reasons for the kind `unknown`."""

NO_MEMBERS: Final = "no_members"
NO_OWNER: Final = "no_owner"
NO_COMMITS: Final = "no_commits"
"""Reasons for the kind `stopped`."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a group's lag, with its evidence. Fields that a cause does not use are None or empty.

    `reason` is set for the kinds `stopped` and `unknown`. `member` is empty for a cause that concerns a host or the
    whole group. The produce rate and the consume rate describe the hot partition, the member or the group. For the
    cause `slow_host`, both rates are averages of the late members on the host. `others_consumed_records_per_second` is
    the mean consume rate of the members that receive records and are not late. `fair_records_per_second` is the produce
    rate that the busiest member would have in the fairest assignment. `rebalances` and `lost_seconds` (rule 2 of
    `cause_of_lag.py`) cover the last `window_seconds`. `since_ms` is the time of the first sample with this cause.
    `advice` is a text for users (`what_if/advice.py`).
    """

    kind: Kind
    reason: str = ""
    topic: str = ""
    partition: int | None = None
    member: str = ""
    client_id: str = ""
    client_host: str = ""
    produced_records_per_second: float | None = None
    consumed_records_per_second: float | None = None
    others_consumed_records_per_second: float | None = None
    capacity_records_per_second: float | None = None
    fair_records_per_second: float | None = None
    window_seconds: float | None = None
    lost_seconds: float | None = None
    rebalances: int | None = None
    since_ms: int | None = None
    advice: str | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that identify a cause. Rates and times are excluded, because they change at each sample."""
        number = "" if self.partition is None else str(self.partition)
        return self.kind, self.reason, self.topic, number, self.member, self.client_host

    @property
    def text(self) -> str:
        """The cause and its evidence, in plain English."""
        return _TEXTS[self.kind](self)


def _rebalancing(cause: Cause) -> str:
    lost = f"{in_words(1000 * (cause.lost_seconds or 0))} of the last {in_words(1000 * (cause.window_seconds or 0))}"
    why = f"because of {counted(cause.rebalances, 'rebalance')}, " if cause.rebalances else ""
    return f"Rebalances: {why}the group did not commit for {lost}."


def _stopped(cause: Cause) -> str:
    if cause.reason == NO_MEMBERS:
        return "Stopped: the group has no members, and records wait."
    if cause.reason == NO_OWNER:
        return f"Stopped: partition {_partition(cause)} has no owner, so no member reads it."
    return "Stopped: records wait, but the committed offsets of the group do not increase."


def _hot_partition(cause: Cause) -> str:
    return (
        f"Hot partition: partition {_partition(cause)} receives {_rate(cause.produced_records_per_second)}, but its"
        f" owner {cause.member} can consume only {_rate(cause.capacity_records_per_second)}. A different assignment"
        f" cannot help."
    )


def _assignment(cause: Cause) -> str:
    return (
        f"Assignment: the partitions of member {cause.member} receive {_rate(cause.produced_records_per_second)}, but"
        f" the member can consume only {_rate(cause.capacity_records_per_second)}. In the fairest assignment, the"
        f" busiest member would receive {_rate(cause.fair_records_per_second)}."
    )


def _slow_member(cause: Cause) -> str:
    others = f"The other members consume {_rate(cause.others_consumed_records_per_second)} on average."
    return f"Slow member: {cause.member} {_progress(cause)}. {others} Only the partitions of this member lag."


def _slow_host(cause: Cause) -> str:
    others = f"Members on other hosts consume {_rate(cause.others_consumed_records_per_second)} on average."
    on_host = f"a member on {host_name(cause.client_host)} {_progress(cause)} on average"
    return f"Slow host: {on_host}. {others} Only the partitions of this host lag."


def _progress(cause: Cause) -> str:
    produced, consumed = _rate(cause.produced_records_per_second), _rate(cause.consumed_records_per_second)
    return f"receives {produced} and consumes {consumed}"


def _under_provisioned(cause: Cause) -> str:
    return (
        f"Too much input: producers write {_rate(cause.produced_records_per_second)}, and the group consumes"
        f" {_rate(cause.consumed_records_per_second)}. The lag of every member grows."
    )


_UNKNOWN_TEXTS: Final = {
    CATCHING_UP: "the group consumes faster than producers write, so the cause has ended",
    OWNERS_UNKNOWN: "the owners of the partitions are unknown",
    RATES_UNKNOWN: "the consume rates or the produce rates are unknown",
    NO_RULE: "no rule of the monitor explains this lag",
}


def _unknown(cause: Cause) -> str:
    if cause.reason == OPEN_TRANSACTION:
        return "Open transaction: an open transaction of a producer blocks every late partition."
    return f"Cause unknown: {_UNKNOWN_TEXTS[cause.reason]}."


_TEXTS: Final = {
    REBALANCING: _rebalancing,
    STOPPED: _stopped,
    HOT_PARTITION: _hot_partition,
    ASSIGNMENT: _assignment,
    SLOW_MEMBER: _slow_member,
    SLOW_HOST: _slow_host,
    UNDER_PROVISIONED: _under_provisioned,
    UNKNOWN: _unknown,
}


def _partition(cause: Cause) -> str:
    return f"{cause.topic}-{cause.partition}"


def _rate(records_per_second: float | None) -> str:
    """Return a rate as text.

    >>> _rate(1234.4), _rate(2.25), _rate(None)
    ('1,234 records/s', '2.2 records/s', 'an unknown number of records/s')
    """
    if records_per_second is None:
        return "an unknown number of records/s"
    return f"{rate_number(records_per_second)} records/s"
