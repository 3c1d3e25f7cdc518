"""Define the dashboard of the monitor itself, for example its progress, resources and limitations."""

from __future__ import annotations

from functools import partial

from grafana_foundation_sdk.builders import dashboard as build

from dashboards.boards import MONITOR_UID, Row, create_dashboard, multiple_choice_variable, source_variable
from dashboards.panels import (
    COUNT,
    AnyPanel,
    DisplayOptions,
    PanelSpec,
    Query,
    bar_panel,
    line_panel,
    stat_panel,
    timeline_panel,
)
from dashboards.promql import CLUSTERS, Scope
from dashboards.runbook import firing_alerts_panel
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ACT, ANY, FINE, NONE, SOME, WATCH, Steps, value_mapping
from streaming.signals import groups, monitor

_READY = [value_mapping({"1": ("ready", FINE), "0": ("not ready", ACT)})]
_NOT_SCRAPED = (
    "Prometheus did not scrape the monitor. Either the monitor does not run, or Prometheus cannot reach the monitor."
)
_RECORDS_BEHIND: Steps = ((10_000, WATCH), (1_000_000, ACT))
_CLUSTER = Label("Cluster", "cluster")
_quarter_spec = partial(PanelSpec, width=6)
_MONITOR_TARGETS = f"and on (job, instance) {CLUSTERS.selector(monitor.READY)}"


def dashboard() -> build.Dashboard:
    """Return the dashboard. Readiness comes first."""
    variables = [
        source_variable(),
        multiple_choice_variable("cluster", "Cluster", f"label_values({monitor.READY.name}, cluster)"),
    ]
    about = (
        "This dashboard shows the health of the monitor for each Kafka cluster. Check this dashboard before you "
        "rely on the other dashboards."
    )
    without_group = Scope(f'{CLUSTERS.matchers}, group=""')
    rows = [
        Row(
            "Is the monitor ready?",
            [_ready(), *_numbers(), _description(), _limitations(), firing_alerts_panel(without_group, [_CLUSTER])],
        ),
        Row("How far has the monitor read the log?", [_unread(), _blocked(), _read(), _decode_failures()]),
        Row("How current are the monitor's values?", _freshness(), is_collapsed=True),
        Row("Which resources does the monitor use?", _resources(), is_collapsed=True),
    ]
    return create_dashboard(MONITOR_UID, "Rebalance monitor: the monitor itself", about, variables, rows)


def _numbers() -> list[AnyPanel]:
    decode_failures = CLUSTERS.increase_in_range(monitor.RECORDS_SKIPPED)
    return [
        _number(
            "Unread records",
            "Number of records of `__consumer_offsets` that the monitor has not read, in all selected clusters. If the "
            "value falls, the monitor is catching up.",
            f"sum({CLUSTERS.series(monitor.OFFSETS_TOPIC_LAG)})",
            _RECORDS_BEHIND,
        ),
        _number(
            "Query restarts in the time range",
            "Number of times that the monitor restarted its Spark query after a failure of the query. The log of the "
            "monitor shows the reason for each failure.",
            f"sum({CLUSTERS.increase_in_range(monitor.QUERY_RESTARTS)})",
            ANY,
        ),
        _number(
            "Decode failures in the time range",
            "Number of records that the monitor could not decode in the time range. Such a record has an unknown "
            "version, is truncated or is invalid. The table `quarantine` contains these records and the reasons. The "
            "information in these records is missing in all other tables and in all metrics.",
            f"sum({decode_failures}) or 0 * sum({CLUSTERS.series(monitor.READY)})",
            SOME,
        ),
    ]


def _number(title: str, how_to_read: str, expression: str, steps: Steps) -> AnyPanel:
    spec = PanelSpec(title, how_to_read, _NOT_SCRAPED, "not scraped", width=4, height=6)
    return stat_panel(spec, expression, DisplayOptions(steps=steps, mappings=NONE))


def _ready() -> AnyPanel:
    spec = PanelSpec(
        "Ready",
        "`ready` means that the monitor has read `__consumer_offsets` to its end and can reach the brokers. `not "
        "ready` means that the values on the other dashboards are not current. After a start, the monitor needs some "
        "minutes to read the log. If it needs much more time, read the log of the monitor.",
        f"{_NOT_SCRAPED} A monitor that is not ready is shown as `not ready`.",
        "not scraped",
        height=6,
    )
    return timeline_panel(spec, [Query(CLUSTERS.series(monitor.READY), "{{cluster}}")], _READY)


def _description() -> AnyPanel:
    spec = PanelSpec(
        "Version and source",
        "The table shows the version of the monitor, the source of its data, and the addresses in the settings "
        "`[links]`. If the source is `admin-api`, the monitor polls the brokers and does not read "
        "`__consumer_offsets`. So the monitor has less information.",
        _NOT_SCRAPED,
        height=6,
    )
    columns: list[Column] = [
        *(_CLUSTER, Label("Version", "version"), Label("Source", "source"), Label("Pages", "page_url")),
        *(Label("Grafana", "grafana_url"), Label("Runbook", "runbook_url")),
        Measure("", CLUSTERS.series(monitor.MONITOR_INFO)),
    ]
    return ranked_table(spec, columns, sort_by="Cluster")


def _limitations() -> AnyPanel:
    spec = PanelSpec(
        "Limitations of the source",
        "Information that the source of this monitor does not provide. Series that need this information are missing "
        "on all dashboards.",
        "The source has no limitations. If the panel `Ready` is also empty, Prometheus did not scrape the monitor.",
        "this source has no limitations",
        height=6,
    )
    return ranked_table(
        spec,
        [_CLUSTER, Label("Capability", "capability"), Measure("", CLUSTERS.series(monitor.SOURCE_LIMITATION))],
        sort_by="Cluster",
    )


def _unread() -> AnyPanel:
    spec = PanelSpec(
        "Unread records over time",
        "Number of records between the monitor's position in `__consumer_offsets` and the high watermark, by "
        "cluster. If this number falls, the monitor is catching up. If this number rises, the log grows faster than "
        "the monitor reads.",
        monitor.OFFSETS_TOPIC_LAG.unknown,
    )
    unread = f"sum by (cluster) ({CLUSTERS.series(monitor.OFFSETS_TOPIC_LAG)})"
    return line_panel(spec, [Query(unread, "{{cluster}}")])


def _blocked() -> AnyPanel:
    spec = PanelSpec(
        "Records blocked by an open transaction",
        "Number of records that the monitor cannot read, because a transaction in the same `__consumer_offsets` "
        "partition is open. The state of each group with such records is unknown. If the transaction stays open for "
        "a long time, find its producer with `kafka-transactions.sh find-hanging`.",
        monitor.OFFSETS_TOPIC_BLOCKED.unknown,
    )
    blocked = f"sum by (cluster) ({CLUSTERS.series(monitor.OFFSETS_TOPIC_BLOCKED)})"
    return line_panel(spec, [Query(blocked, "{{cluster}}")], DisplayOptions(steps=ANY))


def _read() -> AnyPanel:
    spec = PanelSpec(
        "Records that the monitor read, by kind",
        "Number of records per second that the monitor read in all selected clusters. Nearly all records are commits.",
        "Either the monitor read no record at that time, or Prometheus did not scrape the monitor.",
    )
    rate = f"sum by (kind) ({CLUSTERS.rate(monitor.RECORDS_READ)})"
    return line_panel(spec, [Query(rate, "{{kind}}")], DisplayOptions(unit="cps"))


def _decode_failures() -> AnyPanel:
    spec = PanelSpec(
        "Decode failures, by reason",
        "Number of records that the monitor could not decode in each time step. After an upgrade of the brokers, the "
        "reason may be a record version that this monitor does not support yet.",
        "Either there was no decode failure at that time, or Prometheus did not scrape the monitor.",
        "no known decode failure",
    )
    failures = f"sum by (reason) ({CLUSTERS.increase(monitor.RECORDS_SKIPPED, '$__interval')})"
    return bar_panel(spec, [Query(failures, "{{reason}}")])


def _freshness() -> list[AnyPanel]:
    buckets = f"rate({CLUSTERS.selector(monitor.BATCH_DURATION_SECONDS)}[$__rate_interval])"
    age_display = DisplayOptions(unit="s", steps=((30, WATCH), (120, ACT)))
    return [
        _lines(
            "Duration of micro-batches",
            "90 % of the batches take at most this time. A batch ends when the monitor has written the last table. "
            "Values on the dashboards are at most one batch and one sample old.",
            monitor.BATCH_DURATION_SECONDS.unknown,
            Query(f"histogram_quantile(0.9, sum by (cluster, le) ({buckets}))", "{{cluster}}"),
            DisplayOptions(unit="s", steps=((10, WATCH), (60, ACT))),
        ),
        _lines(
            "Time since the last micro-batch",
            "If this time rises while there are unread records, the query makes no progress. If there are no new "
            "records, the monitor runs no batch. In this case, the time rises although there is no problem.",
            monitor.LAST_BATCH_TIMESTAMP_SECONDS.unknown,
            Query(f"time() - {CLUSTERS.series(monitor.LAST_BATCH_TIMESTAMP_SECONDS)}", "{{cluster}}"),
            age_display,
        ),
        _lines(
            "Age of the listing of groups",
            "Time since the brokers last listed their groups. The monitor uses this listing to find rebalances in "
            "progress and the states of streams groups. If the age of the listing rises, the brokers do not respond.",
            groups.GROUP_LISTING_TIMESTAMP_SECONDS.unknown,
            Query(f"time() - {CLUSTERS.series(groups.GROUP_LISTING_TIMESTAMP_SECONDS)}", "{{cluster}}"),
            age_display,
        ),
        _listing_gaps(),
    ]


def _resources() -> list[AnyPanel]:
    return [
        _lines(
            "Memory",
            "Resident memory of all processes of the monitor: Python, the JVM and Spark's workers. After some hours, "
            "the value should stay constant.",
            _NOT_SCRAPED,
            Query(CLUSTERS.series(monitor.RESIDENT_MEMORY_BYTES), "{{cluster}}"),
            DisplayOptions(unit="bytes"),
        ),
        _lines(
            "Rows of state",
            "Number of rows in the state store. There is one row for each group and one row for each "
            "`__consumer_offsets` partition. The number grows with the cluster and falls when groups are deleted.",
            _NOT_SCRAPED,
            Query(CLUSTERS.series(monitor.STATE_ROWS), "{{cluster}}"),
        ),
        _lines(
            "Free disk",
            "Free share of each disk that contains the checkpoint or the tables.",
            monitor.DISK_FREE_RATIO.unknown,
            Query(CLUSTERS.series(monitor.DISK_FREE_RATIO), "{{cluster}} {{folder}}"),
            DisplayOptions(unit="percentunit", steps=((0.1, WATCH), (0.2, FINE)), maximum=1),
        ),
        _table_write_failures(),
        _lines(
            "Duration of a scrape",
            "Duration of each scrape, measured by Prometheus. If a scrape takes more than one second, change the "
            "settings `[metrics]`, so that the monitor exports fewer groups or fewer details.",
            _NOT_SCRAPED,
            Query(f"scrape_duration_seconds {_MONITOR_TARGETS}", "{{instance}}"),
            DisplayOptions(unit="s", steps=((1, WATCH), (5, ACT))),
        ),
        _lines(
            "Samples per scrape",
            "Number of samples that Prometheus received in each scrape.",
            _NOT_SCRAPED,
            Query(f"scrape_samples_scraped {_MONITOR_TARGETS}", "{{instance}}"),
        ),
        _lines(
            "Dropped series",
            "Number of series that the monitor does not export, because the limit `metrics.max_series` is reached. So "
            "some groups have fewer details than you configured.",
            _NOT_SCRAPED,
            Query(CLUSTERS.series(monitor.DROPPED_SERIES), "{{cluster}} {{reason}}"),
            DisplayOptions(steps=ANY),
        ),
        _clocks(),
    ]


def _lines(title: str, how_to_read: str, if_empty: str, query: Query, display: DisplayOptions = COUNT) -> AnyPanel:
    return line_panel(_quarter_spec(title, how_to_read, if_empty), [query], display)


def _listing_gaps() -> AnyPanel:
    spec = _quarter_spec(
        "Gaps in the last listing of the groups",
        "Number of gaps in the last listing of the groups, by reason. Each broker that did not list its groups "
        "completely counts as one gap. A missing permission DESCRIBE on the cluster also counts as one gap. While "
        "there is a gap, the monitor does not treat any group as deleted.",
        groups.GROUP_LISTING_GAPS.unknown,
        "no known failure",
    )
    return line_panel(
        spec, [Query(CLUSTERS.series(groups.GROUP_LISTING_GAPS), "{{cluster}} {{reason}}")], DisplayOptions(steps=ANY)
    )


def _clocks() -> AnyPanel:
    spec = _quarter_spec(
        "Clock difference",
        "Time on the clock of each broker, minus the time on the clock of the monitor. The panel also shows the "
        "maximum error of this difference. The monitor uses the difference to correct its times.",
        monitor.CLOCK_OFFSET_SECONDS.unknown,
    )
    queries = [
        Query(CLUSTERS.series(monitor.CLOCK_OFFSET_SECONDS), "{{cluster}} broker {{broker}}"),
        Query(CLUSTERS.series(monitor.CLOCK_OFFSET_WITHIN_SECONDS), "{{cluster}} broker {{broker}}, error"),
    ]
    return line_panel(spec, queries, DisplayOptions(unit="s"))


def _table_write_failures() -> AnyPanel:
    spec = _quarter_spec(
        "Failed table writes",
        "Number of failed writes to the tables in each time step. The monitor retries each failed write. The log of "
        "the monitor shows the reason for the failure.",
        _NOT_SCRAPED,
    )
    failures = CLUSTERS.increase(monitor.TABLE_WRITE_FAILURES, "$__interval")
    return bar_panel(spec, [Query(failures, "{{cluster}}")], DisplayOptions(steps=ANY))
