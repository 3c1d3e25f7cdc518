"""Several clusters on one `/metrics`: a family's lines stand together, as the text format wants them.

Families whose names and labels are those of other exporters tell no cluster. With several they do, in front of their
own labels: two groups of one name would otherwise be one series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample


class SeveralClusters(Collector):
    """What each cluster's collector tells, family by family."""

    def __init__(self, collectors: Mapping[str, Collector]) -> None:
        self._collectors = collectors

    def collect(self) -> Iterator[Metric]:
        """Take all, then tell."""
        if len(self._collectors) == 1:
            yield from next(iter(self._collectors.values())).collect()
            return
        families: dict[str, Metric] = {}
        for cluster, collector in self._collectors.items():
            for family in collector.collect():
                together = families.setdefault(
                    family.name, Metric(family.name, family.documentation, family.type, family.unit)
                )
                together.samples += _told(cluster, family)
        yield from families.values()


def _told(cluster: str, family: Metric) -> Iterable[Sample]:
    return (sample._replace(labels={"cluster": cluster, **sample.labels}) for sample in family.samples)
