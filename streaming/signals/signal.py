"""One metric's definition.

Rules:

1. A name is as it is exported: a counter's ends in `_total`. A histogram is exported under three names
   (`exported_names`), none of which is its own.
2. A name that ends in a unit (`_seconds`, `_bytes`, `_ratio`, and what is counted: `_partitions`, `_members`) is in it.
3. Labels are in the order in which the exporter gives their values. Those of which all values are known have them in
   `label_values`.
4. `help` says what a sample is, `unknown` why there may be none: absent is never 0.
5. The example is PromQL that asks what somebody on call would ask, of metrics and labels that are defined.

Conventions: https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram"]
GAUGE: Final = "gauge"
COUNTER: Final = "counter"
HISTOGRAM: Final = "histogram"

Granularity = Literal["cluster", "group", "topic", "partition", "member"]
CLUSTER: Final = "cluster"
GROUP: Final = "group"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
MEMBER: Final = "member"
GRANULARITIES: Final[tuple[Granularity, ...]] = (CLUSTER, GROUP, TOPIC, PARTITION, MEMBER)
"""What it is told of, the coarsest first. What the monitor says of itself is told of the cluster, whatever its labels:
there are never more of those series than `__consumer_offsets` has partitions.
"""

FamilySet = Literal["own", "kafka_exporter", "kafka_lag_exporter"]
OWN: Final = "own"
KAFKA_EXPORTER: Final = "kafka_exporter"
KAFKA_LAG_EXPORTER: Final = "kafka_lag_exporter"
FAMILY_SETS: Final[tuple[FamilySet, ...]] = (OWN, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER)
"""Whose names they are: ours, or those of an exporter that people already have dashboards for."""

OF_A_CLUSTER: Final = ("cluster",)
OF_A_GROUP: Final = ("cluster", "group")
"""Labels of what is said of a cluster, and of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A metric, with everything that anybody says of it (rules 1 to 5).

    Example: `Signal(name="rebalance_monitor_ready", unit="boolean", labels=OF_A_CLUSTER, ...)`.
    """

    name: str
    kind: Kind = GAUGE
    unit: str
    labels: tuple[str, ...] = OF_A_GROUP
    help: str
    unknown: str
    example: str
    granularity: Granularity = GROUP
    family_set: FamilySet = OWN
    label_values: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


def exported_names(signal: Signal) -> tuple[str, ...]:
    """The names of its series (rule 1).

    >>> from streaming.signals.rebalances import COMMIT_GAP_SECONDS, REBALANCES
    >>> exported_names(REBALANCES)
    ('rebalance_monitor_rebalances_total',)
    >>> exported_names(COMMIT_GAP_SECONDS)[0]
    'rebalance_monitor_commit_gap_seconds_bucket'
    """
    if signal.kind == HISTOGRAM:
        return tuple(f"{signal.name}_{part}" for part in ("bucket", "sum", "count"))
    return (signal.name,)
