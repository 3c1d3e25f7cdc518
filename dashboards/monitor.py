"""The monitor itself: whether to believe what it says, how far it has read, what it costs, and what it cannot know."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.alerts import firing_alerts_panel
from dashboards.boards import MONITOR_UID, create_dashboard, multiple_choice_variable, source_variable
from dashboards.panels import (
    AnyPanel,
    DisplayOptions,
    PanelSpec,
    Query,
    bar_panel,
    line_panel,
    stat_panel,
    timeline_panel,
)
from dashboards.promql import CLUSTERS, Scope, sum_by
from dashboards.tables import Label, Measure, ranked_table
from dashboards.words import ACT, ANY, FINE, NONE, SOME, WATCH, Steps, value_mapping
from streaming.signals import Signal
from streaming.signals.groups import GROUP_LISTING_AGE_SECONDS, GROUP_LISTING_GAPS
from streaming.signals.monitor import (
    CLOCK_OFFSET_SECONDS,
    CLOCK_OFFSET_WITHIN_SECONDS,
    DROPPED_SERIES,
    LAST_BATCH_SECONDS,
    OFFSETS_TOPIC_BLOCKED,
    OFFSETS_TOPIC_LAG,
    QUERY_RESTARTS,
    READY,
    RECORDS_READ,
    RECORDS_SKIPPED,
    RESIDENT_MEMORY_BYTES,
    SOURCE,
    SOURCE_LIMITATION,
    STATE_ROWS,
)

_READY = [value_mapping({"1": ("ready", FINE), "0": ("not ready", ACT)})]
_NOT_SCRAPED = "the monitor was not scraped: it does not run, or Prometheus does not reach it."
_BATCH_SECONDS: Steps = ((10, WATCH), (60, ACT))
_AGE_SECONDS: Steps = ((30, WATCH), (120, ACT))
_SCRAPE_SECONDS: Steps = ((1, WATCH), (5, ACT))
_RECORDS_BEHIND: Steps = ((10_000, WATCH), (1_000_000, ACT))
_CLUSTER = Label("Cluster", "cluster")
_MONITOR_TARGETS = f"and on (job, instance) {CLUSTERS.selector(READY)}"


def dashboard() -> build.Dashboard:
    """Whether to believe it comes first."""
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({READY.name}, cluster)"),
    ]
    about = "The monitor's own health, a line for each Kafka cluster: before you believe the other dashboards."
    rows = {
        "Can it be believed?": [
            _ready(),
            _unread_now(),
            _restarts(),
            _decode_failures_now(),
            _source(),
            _limitations(),
            _firing(),
        ],
        "How far has it read?": [_unread(), _blocked(), _read(), _decode_failures()],
        "How old is what it says?": [_batch(), _listing_age(), _listing_gaps(), _clocks()],
        "What does it cost?": [_memory(), _state_rows(), _scrape_seconds(), _scrape_samples(), _dropped_series()],
    }
    return create_dashboard(MONITOR_UID, "Rebalance monitor: the monitor itself", about, variables, rows)


def _by_cluster(spec: PanelSpec, signal: Signal, display: DisplayOptions) -> AnyPanel:
    return line_panel(spec, [Query(CLUSTERS.series(signal), "{{cluster}}")], display)


def _number(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    spec = PanelSpec(title, how_to_read, _NOT_SCRAPED, "not scraped", width=4, height=6)
    return stat_panel(spec, expression, DisplayOptions(steps=steps, mappings=NONE))


def _ready() -> AnyPanel:
    spec = PanelSpec(
        "Ready",
        "Caught up with `__consumer_offsets` and in touch with the brokers. Not ready: what the other dashboards show "
        "is of the past. Minutes after a start are catching up; longer is trouble.",
        f"not ready is a word of its own; {_NOT_SCRAPED}",
        "not scraped",
        height=6,
    )
    return timeline_panel(spec, [Query(CLUSTERS.series(READY), "{{cluster}}")], _READY)


def _firing() -> AnyPanel:
    return firing_alerts_panel(Scope(f'{CLUSTERS.matchers}, group=""'), [_CLUSTER])


def _source() -> AnyPanel:
    spec = PanelSpec(
        "Source",
        "Where groups and commits are known from. `admin-api` asks the brokers now and then and knows less.",
        _NOT_SCRAPED,
        height=6,
    )
    return ranked_table(
        spec, [_CLUSTER, Label("Source", "source"), Measure("", CLUSTERS.series(SOURCE))], sort_by="Cluster"
    )


def _limitations() -> AnyPanel:
    spec = PanelSpec(
        "What it cannot know",
        "Things this source does not tell: they have no series anywhere, and nothing is guessed in their place.",
        "the source tells everything, or the monitor was not scraped: see Ready.",
        "nothing: this source tells all",
        height=6,
    )
    return ranked_table(
        spec,
        [_CLUSTER, Label("Capability", "capability"), Measure("", CLUSTERS.series(SOURCE_LIMITATION))],
        sort_by="Cluster",
    )


def _unread_now() -> AnyPanel:
    how_to_read = "Records of `__consumer_offsets` not read yet, of all clusters. Many for minutes: it catches up."
    return _number("Records behind", how_to_read, f"sum({CLUSTERS.series(OFFSETS_TOPIC_LAG)})", _RECORDS_BEHIND)


def _restarts() -> AnyPanel:
    how_to_read = "Times the query failed in the time range and was started again; the reason is in the monitor's log."
    return _number("Restarts in the time range", how_to_read, f"sum({CLUSTERS.increase_in_range(QUERY_RESTARTS)})", ANY)


def _decode_failures_now() -> AnyPanel:
    how_to_read = (
        "Records in quarantine in the time range: of an unknown version, cut short or absurd. They are in the table "
        "`quarantine` with the reason; whatever they said is missing."
    )
    decode_failures = f"sum({CLUSTERS.increase_in_range(RECORDS_SKIPPED)}) or 0 * sum({CLUSTERS.series(READY)})"
    return _number("Quarantined in the time range", how_to_read, decode_failures, SOME)


def _unread() -> AnyPanel:
    spec = PanelSpec(
        "Records not read yet",
        "Records of `__consumer_offsets` to its high watermark, by cluster. Falling: it catches up. Rising: the log "
        "grows faster than it reads.",
        OFFSETS_TOPIC_LAG.unknown,
    )
    return line_panel(spec, [Query(sum_by("cluster", CLUSTERS.series(OFFSETS_TOPIC_LAG)), "{{cluster}}")])


def _blocked() -> AnyPanel:
    spec = PanelSpec(
        "Records held back by an open transaction",
        "Everything behind it in that partition of `__consumer_offsets` cannot be read, other groups' records too: "
        "those groups are unknown meanwhile. For long: kafka-transactions.sh find-hanging names the producer.",
        OFFSETS_TOPIC_BLOCKED.unknown,
    )
    blocked = sum_by("cluster", CLUSTERS.series(OFFSETS_TOPIC_BLOCKED))
    return line_panel(spec, [Query(blocked, "{{cluster}}")], DisplayOptions(steps=ANY))


def _read() -> AnyPanel:
    spec = PanelSpec(
        "Records read, by kind",
        "Of all clusters together. Nearly all are commits.",
        "no record was read then, or the monitor was not scraped.",
    )
    rate = f"rate({CLUSTERS.selector(RECORDS_READ)}[$__rate_interval])"
    return line_panel(spec, [Query(sum_by("kind", rate), "{{kind}}")], DisplayOptions(unit="cps"))


def _decode_failures() -> AnyPanel:
    spec = PanelSpec(
        "Quarantined records, by reason",
        "In each step of time. After an upgrade of the brokers: a record version this monitor does not know yet.",
        "no record went to quarantine then, or the monitor was not scraped.",
        "none seen",
    )
    return bar_panel(spec, [Query(sum_by("reason", CLUSTERS.increase(RECORDS_SKIPPED, "$__interval")), "{{reason}}")])


def _batch() -> AnyPanel:
    spec = PanelSpec(
        "Duration of the last micro-batch",
        "From its start in the driver to its last table. What is shown is up to one batch and one sample old.",
        LAST_BATCH_SECONDS.unknown,
        width=6,
    )
    return _by_cluster(spec, LAST_BATCH_SECONDS, DisplayOptions(unit="s", steps=_BATCH_SECONDS))


def _listing_age() -> AnyPanel:
    spec = PanelSpec(
        "Age of the listing of groups",
        "Rebalances in progress and streams groups' states come from it. Rising: the brokers do not answer.",
        GROUP_LISTING_AGE_SECONDS.unknown,
        width=6,
    )
    return _by_cluster(spec, GROUP_LISTING_AGE_SECONDS, DisplayOptions(unit="s", steps=_AGE_SECONDS))


def _listing_gaps() -> AnyPanel:
    spec = PanelSpec(
        "Brokers that did not list their groups",
        "By reason. No group is taken for gone meanwhile.",
        GROUP_LISTING_GAPS.unknown,
        "all brokers answered, as far as is known",
        width=6,
    )
    return line_panel(
        spec, [Query(CLUSTERS.series(GROUP_LISTING_GAPS), "{{cluster}} {{reason}}")], DisplayOptions(steps=ANY)
    )


def _clocks() -> AnyPanel:
    spec = PanelSpec(
        "Clock difference",
        "Clock of each broker minus clock of the monitor, and the largest error of that estimate. Times are corrected.",
        CLOCK_OFFSET_SECONDS.unknown,
        width=6,
    )
    queries = [
        Query(CLUSTERS.series(CLOCK_OFFSET_SECONDS), "{{cluster}} broker {{broker}}"),
        Query(CLUSTERS.series(CLOCK_OFFSET_WITHIN_SECONDS), "{{cluster}} broker {{broker}}, within"),
    ]
    return line_panel(spec, queries, DisplayOptions(unit="s"))


def _memory() -> AnyPanel:
    spec = PanelSpec(
        "Memory",
        "Resident memory of the monitor's processes: Python, the JVM and Spark's workers. Flat after some hours.",
        _NOT_SCRAPED,
        width=6,
    )
    return _by_cluster(spec, RESIDENT_MEMORY_BYTES, DisplayOptions(unit="bytes"))


def _state_rows() -> AnyPanel:
    spec = PanelSpec(
        "Rows of state",
        "Groups and partitions kept. It grows with the cluster, and shrinks when groups are deleted.",
        _NOT_SCRAPED,
        width=6,
    )
    return _by_cluster(spec, STATE_ROWS, DisplayOptions())


def _scrape_seconds() -> AnyPanel:
    spec = PanelSpec(
        "Duration of a scrape",
        "As Prometheus measured it. More than a second: show fewer groups, or less of each.",
        _NOT_SCRAPED,
        width=6,
    )
    display = DisplayOptions(unit="s", steps=_SCRAPE_SECONDS)
    return line_panel(spec, [Query(f"scrape_duration_seconds {_MONITOR_TARGETS}", "{{instance}}")], display)


def _scrape_samples() -> AnyPanel:
    spec = PanelSpec("Samples of a scrape", "Series that Prometheus got.", _NOT_SCRAPED, width=6)
    return line_panel(spec, [Query(f"scrape_samples_scraped {_MONITOR_TARGETS}", "{{instance}}")])


def _dropped_series() -> AnyPanel:
    spec = PanelSpec(
        "Series left out of a scrape",
        "By the setting that has them left out: `metrics.top_k` shows only the worst groups finely, "
        "`metrics.max_series` is the cap. Above 0 by the cap: some groups are shown less finely than was asked for.",
        _NOT_SCRAPED,
        width=24,
        height=6,
    )
    return line_panel(
        spec, [Query(CLUSTERS.series(DROPPED_SERIES), "{{cluster}} {{reason}}")], DisplayOptions(steps=ANY)
    )
