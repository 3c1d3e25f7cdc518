"""Writes all metric definitions to the page `dashboards/METRICS.md`. Run `python -m tests.metrics_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streaming.signals.catalogue import SUBJECTS, Subject
from streaming.signals.signal import HISTOGRAM, Signal, exported_names

_INTRODUCTION = """\
# Metrics

`python -m tests.metrics_reference` writes this page from `streaming/signals/`. The tests check it.

The default address is `127.0.0.1:9560/metrics`. The format is Prometheus' text format or OpenMetrics. At start, the
monitor reads the topic __consumer_offsets to its end. While the monitor reads, it exports only the metrics of the
section "The monitor itself".

**An unknown value has no series.** An unknown value is never exported as 0, -1, NaN or the last known value. A
comparison such as `== 0` does not match an absent series. To find an absent series, use `absent(...)` or `unless`. A
metric that describes a problem has no series while the problem does not exist. For each metric, the line "reasons for
an absent series" lists all reasons.

**Some metrics are exported only for some groups.** For each metric, the line below the description shows its level of
detail (granularity). The setting `metrics.granularity` selects the level of detail for all groups. With the default
`topic`, metrics of the granularities `group` and `topic` are exported for every group. Metrics of the granularity
`partition` are exported only for the 20 worst groups (`metrics.top_k`). A healthy group has at most 15 series, and one
additional series for each of its topics. A group with problems has more series. To export more or fewer metrics, use
these settings in the section `[metrics]`:

- `granularity = "partition"` exports the metrics of the granularity `partition` for every group.
- `granularity = "member"` also exports the metrics of members.
- `include` and `exclude` are lists of metric names. A metric in `include` is exported for every group. A metric in
  `exclude` is exported for no group.
- `compatible_with = ["kafka_exporter"]` adds the metrics of kafka_exporter for every group and partition. Dashboards
  for kafka_exporter then work unchanged. `compatible_with = ["kafka_lag_exporter"]` adds the metrics of
  kafka-lag-exporter.

`/metrics` also contains the standard metrics of the Python process: `process_*`, `python_info` and `python_gc_*`.
"""


def metrics_reference() -> str:
    """Return the page as Markdown."""
    return "\n".join((_INTRODUCTION, *_contents(), *(line for subject in SUBJECTS for line in _section(subject))))


def _contents() -> Iterator[str]:
    yield "| metric | labels | description |"
    yield "|---|---|---|"
    for subject in SUBJECTS:
        yield f"| **{subject.title}** | | |"
        for signal in subject.signals:
            yield f"| [`{signal.name}`](#{signal.name}) | {', '.join(signal.labels)} | {_first_sentence(signal)} |"
    yield ""


def _first_sentence(signal: Signal) -> str:
    return re.split(r"[.:;] ", signal.help, maxsplit=1)[0].removesuffix(".")


def _section(subject: Subject) -> Iterator[str]:
    yield f"## {subject.title}"
    yield ""
    yield f"{subject.about[0].upper()}{subject.about[1:]}"
    yield ""
    for signal in subject.signals:
        yield from _entry(signal)


def _entry(signal: Signal) -> Iterator[str]:
    yield f"### `{signal.name}`"
    yield ""
    yield signal.help
    yield ""
    yield f"- type: {signal.kind}, unit: {signal.unit}, granularity: {signal.granularity}"
    yield f"- labels: {', '.join(f'`{label}`' for label in signal.labels) or 'none'}"
    for label, values in signal.label_values.items():
        yield f"- `{label}` is one of {', '.join(f'`{value}`' for value in values)}"
    if signal.kind == HISTOGRAM:
        yield f"- series: {', '.join(f'`{name}`' for name in exported_names(signal))}"
    yield f"- reasons for an absent series: {signal.unknown}"
    yield ""
    yield "```promql"
    yield signal.example
    yield "```"
    yield ""
