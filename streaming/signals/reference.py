"""All definitions as one page in Markdown: `dashboards/METRICS.md`, written by `python -m tests.metrics_reference`."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.signals.catalogue import SUBJECTS, Subject
from streaming.signals.signal import HISTOGRAM, Signal, exported_names

_INTRODUCTION = """\
# Metrics

Written by `python -m tests.metrics_reference` from `streaming/signals/`, checked by the tests.

On `127.0.0.1:9560/metrics` unless told otherwise, in Prometheus' text format or OpenMetrics. Until the monitor has
caught up with the log once it shows its own health and nothing else.

**What is not known has no series**: never 0, -1, NaN or the last value. What has no series equals nothing, 0 neither;
`absent(...)` and `unless` ask for that.
"""


def metrics_reference() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, *_contents(), *(line for subject in SUBJECTS for line in _section(subject))))


def _contents() -> Iterator[str]:
    yield "| metric | labels | |"
    yield "|---|---|---|"
    for subject in SUBJECTS:
        yield f"| **{subject.title}** | | |"
        for signal in subject.signals:
            yield f"| [`{signal.name}`](#{signal.name}) | {', '.join(signal.labels)} | {_first_sentence(signal)} |"
    yield ""


def _first_sentence(signal: Signal) -> str:
    return signal.help.partition(": ")[0].partition("; ")[0].removesuffix(".")


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
    yield f"- {signal.kind}, unit: {signal.unit}; told of each {signal.granularity}"
    yield f"- labels: {', '.join(f'`{label}`' for label in signal.labels) or 'none'}"
    for label, values in signal.label_values.items():
        yield f"- `{label}` is one of {', '.join(f'`{value}`' for value in values)}"
    if signal.kind == HISTOGRAM:
        yield f"- series: {', '.join(f'`{name}`' for name in exported_names(signal))}"
    yield f"- no series: {signal.unknown}"
    yield ""
    yield "```promql"
    yield signal.example
    yield "```"
    yield ""
