"""Definitions of all metrics: name, type, unit, labels, help text and an example query.

The exporter, the dashboards, the alerts and `dashboards/METRICS.md` use these definitions. The package contains only
constants, and does not use prometheus-client, Spark or a clock.

- `signal.py`: the type of a definition.
- `groups.py` and similar modules: the definitions, one module per subject.
- `kafka_exporter.py` and `kafka_lag_exporter.py`: metrics with the names and labels of other exporters.
- `catalogue.py`: all definitions by name.

The package imports no other package of this project.
"""

from streaming.signals.catalogue import SIGNALS
from streaming.signals.signal import (
    CLUSTER,
    COUNTER,
    FAMILY_SETS,
    GAUGE,
    GRANULARITIES,
    GROUP,
    HISTOGRAM,
    KAFKA_EXPORTER,
    KAFKA_LAG_EXPORTER,
    MEMBER,
    OWN,
    PARTITION,
    TOPIC,
    Granularity,
    Signal,
    exported_names,
)

__all__ = [
    "CLUSTER",
    "COUNTER",
    "FAMILY_SETS",
    "GAUGE",
    "GRANULARITIES",
    "GROUP",
    "HISTOGRAM",
    "KAFKA_EXPORTER",
    "KAFKA_LAG_EXPORTER",
    "MEMBER",
    "OWN",
    "PARTITION",
    "SIGNALS",
    "TOPIC",
    "Granularity",
    "Signal",
    "exported_names",
]
