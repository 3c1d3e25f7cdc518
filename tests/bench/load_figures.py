"""Part four: whether a monitor of ten thousand groups keeps its trigger under a steady load.

A crowd's records are written where its coordinators would write them, and the broker is started again, so that it knows
the groups as its own. Then a program of its own commits and rebalances at a steady pace while the monitor runs, and
`/metrics` is asked as often as Prometheus asks. In the end every rebalance that was written must be in the tables, once
and evaluated as what it is, and every group must be shown with the lag it has: otherwise there are no figures.
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
from streaming.run.monitor import now_ms
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from streaming.spark.checkpoint_files import QUERY
from tests.bench.batches import Batch, BatchLog
from tests.bench.figures import Bar, Figure, median, percentile
from tests.bench.fill import BenchError, ask_for_coordinator, offsets_topic_ends
from tests.bench.latency_probe import SCRAPE_BAR_SECONDS, SCRAPE_SECONDS, LatencyProbe, behind_records, check_tables
from tests.bench.process import MONITOR, PLAIN_READ, MeasuredProcess
from tests.bench.rebalances import await_ready
from tests.bench.steady_load import SyntheticWriter
from tests.bench.synthetic_groups import SyntheticGroups, Written
from tests.bench.under_load import Steady, UnderLoad, put_under_load

PLAIN_SECONDS = 60.0
"""The plain read is put under the same load, no longer than this: it has no state that would grow."""

_LOADED_SECONDS = 120.0
_READY_SECONDS = 600.0
_LOOK_SECONDS = 0.25
_PLANNED_SECONDS = 2.0
_PACE_KEPT = 0.98
_LATE_TRIGGERS = 2

UNHEARD_COORDINATOR = ("-Dbroker.log.coordinator.level=off",)
"""The coordinator complains, with a page of stack, at each record that is not its own: some 500 times a second."""

OnSeconds = Callable[[float, str], object]
"""Hears how many seconds of the load are over, and in a few words how the batches fare."""


@dataclass(frozen=True, slots=True)
class MonitorUnderLoad:
    """What is measured of the monitor alone."""

    ready_seconds: float
    under_load: UnderLoad
    behind_records: float
    rebalances: int
    latency_probe: LatencyProbe


def found_synthetic_groups(
    broker: EmbeddedBroker, synthetic_groups: SyntheticGroups, on_records: Callable[[int], object]
) -> None:
    """Write a crowd's groups into a new broker's log and let the broker load them."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        admin.create_topics(
            [NewTopic(topic, count, replication_factor=1) for topic, count in synthetic_groups.topics.items()]
        )
        ask_for_coordinator(admin, synthetic_groups.group_id(0))
    finally:
        admin.close()
    SyntheticWriter(broker.bootstrap_servers, synthetic_groups).found(on_records)
    broker.stop()
    broker.start()
    await_listed(broker, synthetic_groups)


def await_listed(broker: EmbeddedBroker, synthetic_groups: SyntheticGroups) -> None:
    """Wait until the coordinator lists every group: one that it does not know would be taken for deleted."""
    connection = Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 30)
    deadline = time.monotonic() + _LOADED_SECONDS
    try:
        while (listed := len(Groups(connection, now_ms).list_groups().groups)) < synthetic_groups.groups:
            if time.monotonic() > deadline:
                raise BenchError(
                    f"the broker lists {listed} groups of {synthetic_groups.groups} (log: {broker.log_path})"
                )
            time.sleep(_LOOK_SECONDS)
    finally:
        connection.close()


def measure_under_load(broker: EmbeddedBroker, folder: Path, steady: Steady, on_seconds: OnSeconds) -> MonitorUnderLoad:
    """Run the monitor until it is ready, then under load. Raises BenchError where what it says is wrong."""
    port, batches = free_port(), BatchLog(folder / "checkpoint" / QUERY)
    environment = steady.environment(broker.bootstrap_servers, folder, port)
    with MeasuredProcess(MONITOR, folder, environment) as process:
        await_ready(process, port, _READY_SECONDS)
        ready_seconds = time.time() - process.started_seconds
        _await_idle(process, batches, steady.trigger_seconds)
        latency_probe = LatencyProbe(port, steady.synthetic_groups)

        def look(seconds: float, written: Sequence[Written], done: Sequence[Batch]) -> None:
            on_seconds(seconds, _in_words(done))
            latency_probe.hear(written)
            latency_probe.ask_if_due()

        under_load, written = put_under_load(
            broker, folder / "load", steady, process=process, batches=batches, on_look=look
        )
        latency_probe.hear([written])
        behind = behind_records(latency_probe.ask())
        latency_probe.await_right(written)
    check_tables(folder / "tables", steady.synthetic_groups, written.rebalances)
    return MonitorUnderLoad(ready_seconds, under_load, behind, written.rebalances, latency_probe)


def _await_idle(process: MeasuredProcess, batches: BatchLog, trigger_seconds: float) -> None:
    """Wait until no batch ran for longer than a trigger.

    Ready does not wait for verdicts on ten thousand new groups. They are made once, and are not the load.
    """
    idle_since_seconds = time.monotonic()
    while time.monotonic() - idle_since_seconds < trigger_seconds + _PLANNED_SECONDS:
        process.check()
        if batches.is_running():
            idle_since_seconds = time.monotonic()
        time.sleep(_LOOK_SECONDS)


def read_plainly_under_load(broker: EmbeddedBroker, folder: Path, steady: Steady, on_seconds: OnSeconds) -> UnderLoad:
    """Run the plain read until it has caught up, then under load."""
    batches = BatchLog(folder / "checkpoint" / QUERY)
    environment = steady.environment(broker.bootstrap_servers, folder, free_port())
    end = sum(offsets_topic_ends(broker.bootstrap_servers).values())
    with MeasuredProcess(PLAIN_READ, folder, environment) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while not (done := batches.read()) or done[-1].position < end:
            process.check()
            if time.monotonic() > deadline:
                raise BenchError(f"the plain read did not catch up in time (log: {process.log_path})")
            time.sleep(_LOOK_SECONDS)
        return put_under_load(
            broker,
            folder / "load",
            steady,
            process=process,
            batches=batches,
            on_look=lambda seconds, _, done: on_seconds(seconds, _in_words(done)),
        )[0]


def _in_words(done: Sequence[Batch]) -> str:
    if not done:
        return "no batch yet"
    return f"{len(done)} batches, the longest {max(batch.seconds for batch in done):.1f} s"


def load_figures(steady: Steady, monitor: MonitorUnderLoad, plain: UnderLoad) -> list[Figure]:
    """What part four found."""
    ours, trigger_seconds = monitor.under_load, steady.trigger_seconds
    if not ours.batches or not plain.batches:
        raise BenchError("no batch was done under the load: let it run for longer than two triggers")
    pace = Bar(steady.commits_per_second * _PACE_KEPT, "at least")
    backlog = Bar(steady.commits_per_second * trigger_seconds * _LATE_TRIGGERS, "at most")
    delays, latency_probe = monitor.latency_probe.delays.seconds, monitor.latency_probe
    return [
        Figure(
            f"{steady.synthetic_groups.groups:,} new groups evaluated and ready, from process start",
            "s",
            monitor.ready_seconds,
        ),
        Figure(f"commits written, over {ours.seconds:.0f} s", "records/s", ours.commits_per_second, bar=pace),
        Figure("batches done meanwhile", "", len(ours.batches), len(plain.batches)),
        Figure(
            "longest batch",
            "s",
            max(ours.batch_seconds),
            max(plain.batch_seconds),
            Bar(trigger_seconds, "at most"),
        ),
        Figure("median batch", "s", median(ours.batch_seconds), median(plain.batch_seconds)),
        Figure("records not read when the load ended", "records", monitor.behind_records, bar=backlog),
        Figure("rebalances written, each in its table once and evaluated", "", monitor.rebalances),
        Figure(f"rebalance written to shown, asked every {SCRAPE_SECONDS:g} s, p50", "s", median(delays)),
        Figure("rebalance written to shown, p95", "s", percentile(delays, 95)),
        Figure(
            f"scrape of {latency_probe.scrape_bytes / (1 << 20):.0f} MiB,"
            f" median of {len(latency_probe.scrape_seconds)}",
            "s",
            median(latency_probe.scrape_seconds),
            bar=Bar(SCRAPE_BAR_SECONDS, "at most"),
        ),
        Figure("- the slowest of them", "s", max(latency_probe.scrape_seconds)),
        _cores("processor", ours, plain, lambda one: one.cpu_seconds),
        _cores("processor, the load", ours, plain, lambda one: one.load_cpu_seconds),
        _cores("processor, broker", ours, plain, lambda one: one.broker_cpu_seconds),
        Figure("load behind its pace at most", "s", ours.late_seconds, plain.late_seconds),
        Figure(
            "peak memory of all its processes (PSS)",
            "MiB",
            ours.peak_memory_bytes / (1 << 20),
            plain.peak_memory_bytes / (1 << 20),
        ),
    ]


def _cores(name: str, ours: UnderLoad, plain: UnderLoad, cpu_seconds: Callable[[UnderLoad], float]) -> Figure:
    """Processor time as a number of cores that were busy all the while."""
    return Figure(name, "cores", cpu_seconds(ours) / ours.seconds, cpu_seconds(plain) / plain.seconds)
