"""The output of `rebalance-monitor history --at` (a group at a past time) and `--between` (two generations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streaming.cli.text.stored import stored_cluster
from streaming.cli.text.terminal import escape_text
from streaming.delta.stored import stored_clusters
from streaming.errors import RemedyError
from streaming.evaluation.incidents.story import headline
from streaming.page.api.as_json import encode
from streaming.page.api.past_json import comparison_json, past_group_json
from streaming.page.last_rebalances import DescribedRebalance
from streaming.page.past.views import CoveredCluster, last_findings, measurement_gap, past_changes, past_members
from streaming.page.rebalance_rows import rebalances_of
from streaming.past.comparison import Comparison
from streaming.past.coverage import Coverage
from streaming.past.lag import lag_by_partition
from streaming.past.moments import Generation, format_moment, parse_moment, parse_moment_or_generation
from streaming.past.reader import PastReader
from streaming.past.report import PastGroup
from streaming.wall_clock import now_ms

_MOST_PARTITIONS = 20


def lines_at(root: str, cluster: str | None, group: str, at: str, *, as_json: bool) -> Iterator[str]:
    """Return the lines that describe a group at the time `at`, for each cluster with this group. Raises RemedyError."""
    at_ms = parse_moment(at)
    if at_ms is None:
        raise RemedyError(f"{at!r} is not a valid time: use a time in UTC, for example 2026-11-22T22:04")
    found = 0
    for name, reader, coverage in _readers(root, cluster, [at_ms]):
        past = reader.group(group, at_ms)
        if past is not None:
            found += 1
            if as_json:
                yield encode(past_group_json(at_ms, CoveredCluster(name, coverage), past)).decode()
            else:
                yield from _group_lines(name, at_ms, past)
                yield _coverage_line(coverage)
    if not found:
        raise RemedyError(_no_row(root, group))


def lines_between(root: str, cluster: str | None, group: str, ends: Sequence[str], *, as_json: bool) -> Iterator[str]:
    """Return the lines that compare two generations, for each cluster that has both generations. Raises RemedyError."""
    parsed = [parse_moment_or_generation(end) for end in ends]
    known = [end for end in parsed if end is not None]
    if len(known) < len(parsed):
        raise RemedyError(
            "--between needs two values: each value is the number of a generation or a time in UTC, for example 41 42"
            " or 2026-11-22T22:04 43"
        )
    one, other = known
    found = 0
    moments_ms = [end for end in known if not isinstance(end, Generation)]
    readers = _readers(root, cluster, moments_ms)
    for name, reader, coverage in readers:
        comparison = reader.compare(group, one, other)
        if comparison is not None:
            found += 1
            if as_json:
                yield encode(comparison_json(CoveredCluster(name, coverage), group, comparison)).decode()
            else:
                yield from _comparison_lines(name, group, comparison)
    if not found:
        missing = (text for name, reader, _ in readers for text in _missing_generations(name, reader, group, known))
        raise RemedyError(next(missing, _no_row(root, group)))


def _missing_generations(
    cluster: str, reader: PastReader, group: str, ends: Sequence[int | Generation]
) -> Iterator[str]:
    last = reader.generation(group, now_ms())
    for end in ends:
        if last is not None and isinstance(end, Generation) and reader.generation(group, end) is None:
            yield (
                f"the tables contain no generation {end.generation_id} of {group!r} in cluster {cluster}. The last"
                f" generation is {_shown(last['generation_id'])}: run `rebalance-monitor history` without --between to"
                " see all stored rebalances"
            )


def _no_row(root: str, group: str) -> str:
    return (
        f"the tables in {root} contain no row of {group!r} for this time or generation. Either the group did not exist,"
        " or the monitor deleted the rows because they were older than tables.retention_days: choose a later time, or"
        " run `rebalance-monitor history` without --at and --between to see all stored rebalances"
    )


def _readers(root: str, cluster: str | None, moments_ms: Sequence[int]) -> Sequence[tuple[str, PastReader, Coverage]]:
    """Return a reader for each cluster whose tables cover all times. Raises RemedyError if no tables cover them."""
    present_ms = now_ms()
    names = stored_clusters(root) if cluster is None else [stored_cluster(root, cluster)]
    readers = [(name, reader, reader.coverage()) for name in names if (reader := PastReader(root, name))]
    refusals = {name: coverage.refusal(moments_ms, present_ms) for name, _, coverage in readers}
    able = [each for each in readers if refusals[each[0]] is None]
    if not able:
        reasons = "; ".join(
            f"cluster {name}: {refusals[name]}. {_coverage_line(coverage)}" for name, _, coverage in readers
        )
        raise RemedyError(f"the tables in {root} do not cover this time: {reasons or 'the tables are empty'}")
    return able


def _coverage_line(coverage: Coverage) -> str:
    if coverage.first_ms is None or coverage.last_ms is None:
        return "The tables are empty"
    return f"The tables cover {format_moment(coverage.first_ms)} to {format_moment(coverage.last_ms)} UTC"


def _group_lines(cluster: str, at_ms: int, past: PastGroup) -> Iterator[str]:
    group, membership, lag = past.report, past.report.membership, past.report.lag
    yield f"{escape_text(group.group_id)} in cluster {escape_text(cluster)} at {format_moment(at_ms)} UTC"
    yield (
        f"state {membership.state}, generation {_shown(membership.generation_id)}, strategy"
        f" {escape_text(membership.protocol or '?')}, {_shown(membership.members)} members, last record"
        f" {_time(membership.record_timestamp_ms)}"
    )
    yield (
        f"verdict {group.assignment.verdict or '?'}, drift {_shown(group.assignment.drift_partitions)} partitions, lag"
        f" {_shown(lag.records)} records, {_seconds(lag.seconds, is_bound=bool(lag.seconds_is_bound))} behind, status"
        f" {lag.status or '?'}"
    )
    yield from (f"trouble: {escape_text(trouble.text)}" for trouble in group.troubles)
    gap = measurement_gap(past.measurement)
    yield f"lag measured at {_time(past.measurement.last_ms)}" if gap is None else f"not measured: {gap}"
    yield from (f"at the last measurement: {escape_text(sentence)}" for sentence in last_findings(past))
    for one in past_members(group, lag_by_partition(past.partitions)):
        expected = "" if one.expected in {None, one.partitions} else f" (expected {one.expected})"
        yield (
            f"member {escape_text(one.member.name)}: {_shown(one.partitions)} partitions{expected}, lag"
            f" {_shown(one.lag)}: {'?' if one.topics is None else _held(one.topics) or '-'}"
        )
    for partition in past.partitions[:_MOST_PARTITIONS]:
        reason = f" ({partition.unknown_reason})" if partition.unknown_reason else ""
        yield (
            f"partition {escape_text(partition.topic)}-{partition.partition}: lag {_shown(partition.lag)}{reason},"
            f" {_seconds(partition.lag_seconds, is_bound=partition.lag_seconds_is_bound)} behind, status"
            f" {partition.status or '?'}"
        )
    if len(past.partitions) > _MOST_PARTITIONS:
        yield f"{len(past.partitions)} partitions in total; only the {_MOST_PARTITIONS} with the highest lag are shown"
    if past.findings.cause is not None:
        yield f"cause of the lag: {escape_text(past.findings.cause['text'] or '')}"
    incident = (past.last_findings or past.findings).incident
    if incident is not None:
        when = "part" if gap is None else "at the last measurement: part"
        yield f"{when} of the incident {incident.incident_id}: {escape_text(headline(incident))}"
    for rebalance in rebalances_of(past.rebalances)[:5]:
        yield _rebalance_line(rebalance)


def _comparison_lines(cluster: str, group: str, comparison: Comparison) -> Iterator[str]:
    yield f"{escape_text(group)} in cluster {escape_text(cluster)}"
    for word, end in (("before", comparison.before), ("after", comparison.after)):
        yield (
            f"{word}: generation {_shown(end.generation_id)} at {_time(end.record_timestamp_ms)}, state {end.state},"
            f" strategy {escape_text(end.protocol or '?')}, {_shown(end.members)} members"
        )
    for change in past_changes(comparison.changes):
        if change.lost is None or change.gained is None:
            partitions = "; lost and gained partitions unknown"
        else:
            lost = f"; lost {_held(change.lost)}" if change.lost else ""
            partitions = lost + (f"; gained {_held(change.gained)}" if change.gained else "")
        yield f"member {escape_text(change.name)}: {change.what}{partitions}"
    bound = "" if comparison.is_exact else "at least "
    necessary = "?" if comparison.fewest_moves is None else f"{bound}{comparison.fewest_moves}"
    yield f"{_shown(comparison.moved_partitions)} partitions moved ({necessary} necessary)"
    if comparison.has_more_rebalances:
        yield "more rebalances happened between the two generations; only the latest are shown"
    for rebalance in reversed(rebalances_of(comparison.rebalances)):
        yield _rebalance_line(rebalance)


def _rebalance_line(rebalance: DescribedRebalance) -> str:
    text = escape_text(rebalance.text)
    return f"{_time(rebalance.timestamp_ms)}  generation {_shown(rebalance.generation_id)}: {text}"


def _held(topics: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{escape_text(topic)} {numbers}" for topic, numbers in topics)


def _shown(number: int | None) -> str:
    return "?" if number is None else str(number)


def _seconds(seconds: float | None, *, is_bound: bool) -> str:
    return "? s" if seconds is None else f"{'at least ' if is_bound else ''}{seconds:.1f} s"


def _time(at_ms: int | None) -> str:
    return "?" if at_ms is None else format_moment(at_ms)
