"""The part `evaluation`: checks whether each batch ends within the trigger interval, at a steady load of 10,000 groups.

1. The benchmark writes the records of the synthetic groups into the partitions of `__consumer_offsets` that their
   coordinators would use. Then it restarts the broker, which loads the groups.
2. A separate process writes commits and rebalances at a steady pace while the monitor runs. The latency probe requests
   `/metrics` as often as Prometheus.
3. At the end, every written rebalance must be in the tables exactly once with the right verdict, and every group must
   be shown with its lag. Otherwise there are no figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from streaming.spark.checkpoint_files import QUERY
from streaming.wall_clock import now_ms
from tests.bench.batches import Batch, BatchLog
from tests.bench.figures import Figure, Target, median, percentile
from tests.bench.fill import BenchError, offsets_topic_ends, request_coordinator
from tests.bench.latency_probe import SCRAPE_SECONDS, SCRAPE_TARGET_SECONDS, LatencyProbe, check_tables, unread_records
from tests.bench.process import BASELINE, MONITOR, MeasuredProcess
from tests.bench.rebalances import await_ready
from tests.bench.steady_load import SyntheticWriter
from tests.bench.synthetic_groups import LoadProgress, SyntheticGroups
from tests.bench.under_load import LoadMeasurement, SteadyLoad, run_under_load

BASELINE_SECONDS = 60.0
"""Maximum duration of the load for the baseline. It has no state that grows, so a short run is enough."""

LONGEST_BATCH_TARGET, PROCESSOR_TARGET = Target(4, "at most"), Target(0.45, "at most")
"""The targets for 10,000 groups with 20,000 commits/s. Other loads must only keep the trigger interval."""

_LOADED_SECONDS = 120.0
_READY_SECONDS = 600.0
_POLL_SECONDS = 0.25
_PLANNED_SECONDS = 2.0
_PACE_KEPT = 0.98
_LATE_TRIGGERS = 2

QUIET_COORDINATOR_OPTIONS = ("-Dbroker.log.coordinator.level=off",)
"""Java options that disable the coordinator's log.

The coordinator did not write the records itself. So it logs a stack trace at each advance of the high watermark, some
500 times per second.
"""

OnSeconds = Callable[[float, str], object]
"""Receives the seconds since the start of the load, and a summary of the batches."""


@dataclass(frozen=True, slots=True)
class MonitorMeasurement:
    """The measured values of one run of the monitor under load."""

    ready_seconds: float
    under_load: LoadMeasurement
    unread_records: float
    rebalances: int
    latency_probe: LatencyProbe


def write_synthetic_groups(
    broker: EmbeddedBroker, synthetic_groups: SyntheticGroups, on_records: Callable[[int], object]
) -> None:
    """Write the synthetic groups into the log of a new broker, and restart the broker so that it loads them."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        admin.create_topics(
            [NewTopic(topic, count, replication_factor=1) for topic, count in synthetic_groups.topics.items()]
        )
        request_coordinator(admin, synthetic_groups.group_id(0))
    finally:
        admin.close()
    SyntheticWriter(broker.bootstrap_servers, synthetic_groups).write_first_records(on_records)
    broker.stop()
    broker.start()
    await_listed(broker, synthetic_groups)


def await_listed(broker: EmbeddedBroker, synthetic_groups: SyntheticGroups) -> None:
    """Wait until the coordinator lists every group. The monitor would treat a missing group as deleted."""
    connection = Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 30)
    deadline = time.monotonic() + _LOADED_SECONDS
    try:
        while (listed := len(Groups(connection, now_ms).list_groups().groups)) < synthetic_groups.groups:
            if time.monotonic() > deadline:
                raise BenchError(
                    f"the broker lists only {listed} of {synthetic_groups.groups} groups (log: {broker.log_path})"
                )
            time.sleep(_POLL_SECONDS)
    finally:
        connection.close()


def measure_under_load(
    broker: EmbeddedBroker, folder: Path, steady_load: SteadyLoad, on_seconds: OnSeconds
) -> MonitorMeasurement:
    """Run the monitor until it is ready, then under load. Raises BenchError if its metrics or tables are wrong."""
    port, batches = free_port(), BatchLog(folder / "checkpoint" / QUERY)
    environment = steady_load.environment(broker.bootstrap_servers, folder, port)
    with MeasuredProcess(MONITOR, folder, environment) as process:
        await_ready(process, port, _READY_SECONDS)
        ready_seconds = time.time() - process.started_seconds
        _await_idle(process, batches, steady_load.trigger_seconds)
        latency_probe = LatencyProbe(port, steady_load.synthetic_groups)

        def update(seconds: float, written: Sequence[LoadProgress], done: Sequence[Batch]) -> None:
            on_seconds(seconds, _in_words(done))
            latency_probe.add_progress(written)
            latency_probe.request_if_due()

        under_load, written = run_under_load(
            broker, folder / "load", steady_load, process=process, batches=batches, on_poll=update
        )
        latency_probe.add_progress([written])
        unread = unread_records(latency_probe.request())
        latency_probe.await_correct_metrics(written)
    check_tables(folder / "tables", steady_load.synthetic_groups, written.rebalances)
    return MonitorMeasurement(ready_seconds, under_load, unread, written.rebalances, latency_probe)


def _await_idle(process: MeasuredProcess, batches: BatchLog, trigger_seconds: float) -> None:
    """Wait until no batch has run for longer than a trigger interval.

    Ready does not wait for all verdicts on 10,000 new groups. This evaluation happens once. It is not part of the load.
    """
    idle_since_seconds = time.monotonic()
    while time.monotonic() - idle_since_seconds < trigger_seconds + _PLANNED_SECONDS:
        process.check()
        if batches.is_running():
            idle_since_seconds = time.monotonic()
        time.sleep(_POLL_SECONDS)


def measure_baseline_under_load(
    broker: EmbeddedBroker, folder: Path, steady_load: SteadyLoad, on_seconds: OnSeconds
) -> LoadMeasurement:
    """Run the baseline until it has caught up, then under load."""
    batches = BatchLog(folder / "checkpoint" / QUERY)
    environment = steady_load.environment(broker.bootstrap_servers, folder, free_port())
    end = sum(offsets_topic_ends(broker.bootstrap_servers).values())
    with MeasuredProcess(BASELINE, folder, environment) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while not (done := batches.read()) or done[-1].position < end:
            process.check()
            if time.monotonic() > deadline:
                raise BenchError(f"the baseline did not catch up in time (log: {process.log_path})")
            time.sleep(_POLL_SECONDS)
        return run_under_load(
            broker,
            folder / "load",
            steady_load,
            process=process,
            batches=batches,
            on_poll=lambda seconds, _, done: on_seconds(seconds, _in_words(done)),
        )[0]


def _in_words(done: Sequence[Batch]) -> str:
    if not done:
        return "no batch yet"
    return f"{len(done)} batches, the longest {max(batch.seconds for batch in done):.1f} s"


def load_figures(steady_load: SteadyLoad, monitor: MonitorMeasurement, baseline: LoadMeasurement) -> list[Figure]:
    """Return the figures of this part."""
    ours, trigger_seconds = monitor.under_load, steady_load.trigger_seconds
    if not ours.batches or not baseline.batches:
        raise BenchError("no batch ended under the load: let the load run for longer than two trigger intervals")
    pace = Target(steady_load.commits_per_second * _PACE_KEPT, "at least")
    backlog = Target(steady_load.commits_per_second * trigger_seconds * _LATE_TRIGGERS, "at most")
    is_full_size = (steady_load.synthetic_groups.groups, steady_load.commits_per_second) == (10_000, 20_000)
    delays, latency_probe = monitor.latency_probe.delays.seconds, monitor.latency_probe
    return [
        Figure(
            f"{steady_load.synthetic_groups.groups:,} new groups evaluated and ready, from process start",
            "s",
            monitor.ready_seconds,
        ),
        Figure(f"commits written, over {ours.seconds:.0f} s", "records/s", ours.commits_per_second, target=pace),
        Figure("batches under load", "", len(ours.batches), len(baseline.batches)),
        Figure(
            "longest batch",
            "s",
            max(ours.batch_seconds),
            max(baseline.batch_seconds),
            LONGEST_BATCH_TARGET if is_full_size else Target(trigger_seconds, "at most"),
        ),
        Figure("median batch", "s", median(ours.batch_seconds), median(baseline.batch_seconds)),
        Figure("records not read when the load ended", "records", monitor.unread_records, target=backlog),
        Figure("rebalances written, each with one row and a verdict", "", monitor.rebalances),
        Figure(f"rebalance written to shown, one scrape per {SCRAPE_SECONDS:g} s, p50", "s", median(delays)),
        Figure("rebalance written to shown, p95", "s", percentile(delays, 95)),
        Figure(
            f"scrape of {latency_probe.scrape_bytes / (1 << 20):.0f} MiB,"
            f" median of {len(latency_probe.scrape_seconds)}",
            "s",
            median(latency_probe.scrape_seconds),
            target=Target(SCRAPE_TARGET_SECONDS, "at most"),
        ),
        Figure("- the slowest scrape", "s", max(latency_probe.scrape_seconds)),
        _cores("processor", ours, baseline, lambda one: one.cpu_seconds, PROCESSOR_TARGET if is_full_size else None),
        _cores("processor, the load", ours, baseline, lambda one: one.load_cpu_seconds),
        _cores("processor, broker", ours, baseline, lambda one: one.broker_cpu_seconds),
        Figure("maximum delay of the load", "s", ours.late_seconds, baseline.late_seconds),
        Figure(
            "peak memory of all processes (PSS)",
            "MiB",
            ours.peak_memory_bytes / (1 << 20),
            baseline.peak_memory_bytes / (1 << 20),
        ),
    ]


def _cores(
    name: str,
    ours: LoadMeasurement,
    baseline: LoadMeasurement,
    cpu_seconds: Callable[[LoadMeasurement], float],
    target: Target | None = None,
) -> Figure:
    """Return processor time as the average number of busy cores."""
    return Figure(name, "cores", cpu_seconds(ours) / ours.seconds, cpu_seconds(baseline) / baseline.seconds, target)
