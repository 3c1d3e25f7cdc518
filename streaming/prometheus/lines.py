"""Writes samples as lines of text. prometheus-client writes the same lines, but more slowly.

1. A line is the same in Prometheus' text format and in OpenMetrics. Only the header of a family differs
   (`exposition`).
2. Labels are sorted by name, and their values are escaped. UTF-8 cannot encode a lone surrogate, so `?` replaces a lone
   surrogate. Therefore, the rest of the scrape remains valid.
3. Some labels (for example, the cluster) have the same value in all samples of a writer. The writer formats each of
   these labels only once.
4. If there are many samples, labels and values are columns, and Arrow combines the columns into lines. A null value has
   no line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from prometheus_client.utils import floatToGoString

from streaming.signals import HISTOGRAM, Signal

_PLAIN_NUMBERS = 1_000_000
"""Integers below this number have the form `7.0`. Go writes this number and all larger integers with an exponent."""
_MAX_DIGITS = 15
"""Floats represent integers of up to this number of digits exactly. Python writes such floats without exponent."""
_BUCKET, _SUM, _COUNT = "_bucket", "_sum", "_count"


class Sample(NamedTuple):
    """The current value of one series.

    `labels` contains label values, in the order of the label names. The values of constant labels are not included.
    Samples of a histogram have a suffix. The sample of a bucket has one additional label: the upper bound of the
    bucket.
    """

    labels: tuple[str, ...]
    value: float
    suffix: str = ""


def histogram_samples(
    labels: tuple[str, ...], bounds: Sequence[float], counts: Sequence[int], total: float
) -> Iterator[Sample]:
    """Return the samples of a histogram.

    `counts` contains the number of values in each bucket. The last entry is the number of values above all bounds.
    `total` is the sum of all values.

    >>> [(sample.labels, sample.value) for sample in histogram_samples((), (1, 5), (2, 0, 1), 30)]
    [(('1.0',), 2), (('5.0',), 2), (('+Inf',), 3), ((), 3), ((), 30)]
    """
    for bound, count in zip((*map(float, bounds), inf), accumulate(counts), strict=True):
        yield Sample((*labels, format_number(bound)), count, _BUCKET)
    yield Sample(labels, sum(counts), _COUNT)
    yield Sample(labels, total, _SUM)


class Writer:
    r"""Writes the lines of one metric. All lines have the same constant labels (`constant`).

    >>> from streaming.signals.lag import GROUP_STATUS
    >>> Writer(GROUP_STATUS, {"cluster": "prod"}).text([Sample(("billing", "OK"), 1)])
    'rebalance_monitor_group_status{cluster="prod",group="billing",status="OK"} 1.0\n'
    """

    def __init__(self, signal: Signal, constant: Mapping[str, str]) -> None:
        own = tuple(label for label in signal.labels if label not in constant)
        named = {"": own}
        if signal.kind == HISTOGRAM:
            named = {_BUCKET: (*own, "le"), _COUNT: own, _SUM: own}
        self._lines = {suffix: _Line(signal.name + suffix, labels, constant) for suffix, labels in named.items()}

    def text(self, samples: Iterable[Sample]) -> str:
        """Return the lines of the samples."""
        lines = self._lines
        return "".join([lines[sample.suffix].format_sample(sample) for sample in samples])

    def column(self, labels: Mapping[str, pa.Array], values: pa.Array) -> pa.Buffer:
        """Combine a column of numbers with columns of escaped labels into lines (rule 4).

        `labels` maps label names to columns. Labels that the metric does not have are ignored.
        """
        return self._lines[""].format_column(labels, values)


class _Line:
    def __init__(self, name: str, labels: Sequence[str], constant: Mapping[str, str]) -> None:
        self._between, self._names = [f"{name}{{"], []
        for label in sorted({*labels, *constant}):
            self._between[-1] += "," if self._between[-1][-1] == '"' else ""
            if label in constant:
                self._between[-1] += f'{label}="{escape_label(constant[label])}"'
            else:
                self._between[-1] += f'{label}="'
                self._between.append('"')
                self._names.append(label)
        self._between[-1] = f"{self._between[-1]}}} " if labels or constant else f"{name} "
        self._order = [labels.index(label) for label in self._names]
        self._template = "%s".join(part.replace("%", "%%") for part in self._between) + "%s\n"

    def format_sample(self, sample: Sample) -> str:
        labels = sample.labels
        return self._template % (*[escape_label(labels[at]) for at in self._order], format_number(sample.value))

    def format_column(self, labels: Mapping[str, pa.Array], values: pa.Array) -> pa.Buffer:
        parts: list[object] = [self._between[0]]
        for name, following in zip(self._names, self._between[1:], strict=True):
            parts += [labels[name], following]
        lines = pc.binary_join_element_wise(*parts, format_numbers(values), "\n", "")
        size = pc.sum(pc.binary_length(lines)).as_py() or 0
        # Arrow already stores the lines one after the other in memory, so a copy is not necessary.
        return lines.buffers()[2].slice(0, size) if size else pa.py_buffer(b"")


@lru_cache(maxsize=65_536)
def escape_label(value: str) -> str:
    r"""Escape a label value (rule 2). The caller puts the result between quotes.

    >>> escape_label('a "quoted" name')
    'a \\"quoted\\" name'
    """
    printable = value if value.isascii() else value.encode(errors="replace").decode()
    return printable.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def escape_labels(values: pa.ChunkedArray) -> pa.Array:
    """Escape a column of label values. Numbers become text. Each distinct value is escaped only once."""
    array = as_one_array(values)
    return map_distinct(escape_label, array) if pa.types.is_string(array.type) else array.cast(pa.string())


def format_number(value: float) -> str:
    """Return the value of a sample in the format that Go prints.

    >>> format_number(7), format_number(1_250_000), format_number(float("inf"))
    ('7.0', '1.25e+06', '+Inf')
    """
    if value.__class__ is int and 0 <= value < _PLAIN_NUMBERS:
        return f"{value}.0"
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


def format_numbers(values: pa.Array) -> pa.Array:
    """Format each number of a column as `format_number` does. Null remains null."""
    if not pa.types.is_integer(values.type):
        return map_distinct(format_number, values)
    extremes = pc.min_max(values)
    smallest, largest = extremes["min"].as_py(), extremes["max"].as_py()
    if smallest is None or smallest < 0 or largest >= 10**_MAX_DIGITS:
        return map_distinct(format_number, values)
    digits = values.cast(pa.string())
    plain = pc.binary_join_element_wise(digits, ".0", "")
    if largest < _PLAIN_NUMBERS:
        return plain
    return pc.if_else(pc.less(values, _PLAIN_NUMBERS), plain, _with_exponent(digits))


def _with_exponent(digits: pa.Array) -> pa.Array:
    exponents = pa.array([format_number(10**place).removeprefix("1") for place in range(_MAX_DIGITS)])
    first, rest = pc.utf8_slice_codeunits(digits, 0, 1), pc.utf8_slice_codeunits(digits, 1)
    mantissa = pc.utf8_rtrim(pc.binary_join_element_wise(first, rest, "."), "0.")
    length = pc.subtract(pc.utf8_length(digits), 1)
    return pc.binary_join_element_wise(mantissa, exponents.take(length), "")


def map_distinct(to_text: Callable[..., str], values: pa.Array) -> pa.Array:
    """Apply a function to a column, but only once for each distinct value. Null remains null."""
    encoded = values.dictionary_encode()
    return pa.array(map(to_text, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


def as_one_array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return the values as one array instead of several chunks."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
