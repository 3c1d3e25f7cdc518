"""Defines the type of a metric definition.

Rules:

1. `name` is the exported name. The name of a counter ends in `_total`. A histogram is exported under three names:
   `name` with the suffixes `_bucket`, `_sum` and `_count` (`exported_names`).
2. If a name ends in a unit (`_seconds`, `_bytes`, `_ratio`, `_partitions`, `_members`, ...), the values have this unit.
3. The order of labels is the order in which the exporter writes the label values. If a label has a fixed set of values,
   `label_values` lists these values.
4. `help` describes the value of the metric. `unknown` lists the reasons why a series can be absent. An absent series
   does not always mean that the value is 0.
5. `example` is a PromQL query for an engineer on call. The query uses only metrics and labels that are defined in this
   package.
6. `granularity` is the level of detail of the metric. The metric is exported for every group if its granularity is not
   finer than `metrics.granularity`. For the worst groups (`metrics.top_k`), all metrics of this project are exported,
   except metrics of the granularity `member`.

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
"""All granularities, the coarsest first.

Metrics of the monitor itself have the granularity `cluster`, even if they have labels other than `cluster`.
"""

FamilySet = Literal["own", "kafka_exporter", "kafka_lag_exporter"]
OWN: Final = "own"
KAFKA_EXPORTER: Final = "kafka_exporter"
KAFKA_LAG_EXPORTER: Final = "kafka_lag_exporter"
FAMILY_SETS: Final[tuple[FamilySet, ...]] = (OWN, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER)
"""The projects that defined the metric names: this project, and two exporters with existing dashboards."""

OF_A_CLUSTER: Final = ("cluster",)
OF_A_GROUP: Final = ("cluster", "group")
"""The labels of metrics that describe a cluster (`OF_A_CLUSTER`) or a group (`OF_A_GROUP`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The definition of a metric: its name, type, unit, labels and texts.

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
    label_values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make `label_values` read-only, because two signals can get the same dict."""
        object.__setattr__(self, "label_values", MappingProxyType(dict(self.label_values)))


def exported_names(signal: Signal) -> tuple[str, ...]:
    """Return the names of the metric's series (rule 1).

    >>> from streaming.signals.rebalances import COMMIT_GAP_SECONDS, REBALANCES
    >>> exported_names(REBALANCES)
    ('rebalance_monitor_rebalances_total',)
    >>> exported_names(COMMIT_GAP_SECONDS)[0]
    'rebalance_monitor_commit_gap_seconds_bucket'
    """
    if signal.kind == HISTOGRAM:
        return tuple(f"{signal.name}_{part}" for part in ("bucket", "sum", "count"))
    return (signal.name,)
