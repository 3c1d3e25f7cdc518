"""Writes the standard metrics of prometheus-client: `process_*`, `python_info` and `python_gc_*`.

The metrics describe the Python process that answers the scrape. The standard metrics have no label for the cluster, and
occur once in a response. `rebalance_monitor_resident_memory_bytes` also includes the processes of Spark.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from streaming.prometheus.exposition import END, Encoder

_REGISTRY = CollectorRegistry(auto_describe=False)
for _collector in (ProcessCollector, PlatformCollector, GCCollector):
    _collector(registry=_REGISTRY)


def process_metrics(encoder: Encoder) -> bytes:
    """Return the current standard metrics as complete families."""
    return encoder(_REGISTRY).removesuffix(END)
