"""What is measured, said once: names, types, units, labels, words and an example query of every metric.

The exporter, dashboards, alerts and `dashboards/METRICS.md` take all of it from here, so that none of them can tell of
a metric that another does not know. Values only: nothing here knows prometheus-client, Spark or a clock.

signal.py              what a definition is
groups.py, ...         the definitions, a module for each subject
kafka_exporter.py, ... those that other exporters made known, under the names and labels they have there
catalogue.py           all of them by name
reference.py           all of them as a page to read
"""

from streaming.signals.catalogue import SIGNALS, SUBJECTS, Subject
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
    "SUBJECTS",
    "TOPIC",
    "Granularity",
    "Signal",
    "Subject",
    "exported_names",
]
