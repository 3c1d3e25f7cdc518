"""Define every setting with its default and description. `rebalance-monitor config check` prints the descriptions."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator
from typing_extensions import Self

from streaming.config.groups import Pattern
from streaming.config.section import Section
from streaming.config.security import SecuritySettings
from streaming.config.types.addresses import BootstrapServers, Host
from streaming.config.types.counts import Count
from streaming.config.types.durations import Days, Hours, Seconds
from streaming.config.types.paths import AbsolutePath, OptionalFile, TablesPath, are_disjoint
from streaming.config.types.references import is_reference
from streaming.config.types.spark import HeapSize, SparkConf, SparkMaster
from streaming.signals import SIGNALS


def _state_folder(name: str) -> str:
    return f"{os.environ.get('XDG_STATE_HOME') or '~/.local/state'}/kafka-rebalance-monitor/{name}"


def _check_section_name(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ValueError(
            "the name of a section may have only lower-case letters, digits and single underscores: to use a"
            " different name in tables and labels, set cluster"
        )
    return name


def _check_metric_name(name: str) -> str:
    if name not in SIGNALS:
        near = get_close_matches(name, SIGNALS)
        hint = f"did you mean {' or '.join(near)}?" if near else "dashboards/METRICS.md lists all names"
        raise ValueError(f"no such metric: {hint}")
    return name


def _check_reference(reference: str) -> str:
    if not is_reference(reference):
        raise ValueError("write module:attribute")
    return reference


MetricName = Annotated[str, AfterValidator(_check_metric_name)]
StrategyReference = Annotated[str, AfterValidator(_check_reference)]
ClusterSection = Annotated[str, AfterValidator(_check_section_name)]


class KafkaSettings(Section):
    """The cluster to watch."""

    bootstrap_servers: BootstrapServers = Field(
        "localhost:9092", description="Addresses of brokers as host:port, separated by commas."
    )
    cluster: str = Field("default", min_length=1, description="Name of the cluster in tables and labels.")
    connect_timeout_seconds: Seconds = Field(
        30, description="Timeout of the first connection to the brokers, in seconds."
    )
    security: SecuritySettings = SecuritySettings()


OFFSETS_TOPIC_SOURCE: Final = "offsets-topic"
ADMIN_API_SOURCE: Final = "admin-api"
SourceKind = Literal["offsets-topic", "admin-api"]


class ClusterSettings(Section):
    """An additional cluster to watch, besides the cluster in [kafka]. Each cluster has its own streaming query."""

    bootstrap_servers: BootstrapServers = Field(description="Addresses of brokers as host:port, separated by commas.")
    cluster: str | None = Field(
        None, min_length=1, description="Name of the cluster in tables and labels. Default: the name of the section."
    )
    connect_timeout_seconds: Seconds | None = Field(
        None,
        description="Timeout of the first connection to this cluster's brokers, in seconds. Default: the value in"
        " [kafka].",
    )
    source_kind: SourceKind | None = Field(
        None, description="Value of source.kind for this cluster. Default: the value of source.kind."
    )
    checkpoint: AbsolutePath | None = Field(
        None,
        description="Folder of the checkpoint of this cluster. Default: PATH-clusters/NAME. PATH is the value of"
        " paths.checkpoint, and NAME is the name of the section.",
    )
    security: SecuritySettings | None = Field(
        None,
        description="Security settings of this cluster. If this section exists, the monitor ignores [kafka.security]"
        " for this cluster. Default: [kafka.security].",
    )


class SourceSettings(Section):
    """The source from which the monitor reads groups and committed offsets."""

    kind: SourceKind = Field(
        OFFSETS_TOPIC_SOURCE,
        description="Source from which the monitor reads groups and commits. With offsets-topic, the monitor reads the"
        " topic __consumer_offsets. With admin-api, the monitor polls the group coordinators every"
        " sampling.interval_seconds, and can miss rebalances. Use admin-api only if the monitor has no permission to"
        " read __consumer_offsets. You cannot change the value for an existing checkpoint.",
    )
    max_records_per_batch: Count = Field(2_000_000, ge=1, description="Maximum number of records in one micro-batch.")
    trigger_seconds: Seconds = Field(
        2, description="Seconds between the starts of two micro-batches, if there are new records."
    )


class SparkSettings(Section):
    """The Spark session of the monitor."""

    master: SparkMaster = Field(
        "local[2]", description="Spark master URL. local[n] runs at most n tasks in parallel for each cluster."
    )
    driver_memory: HeapSize = Field(
        "1g", description="Maximum heap size of the driver's JVM, for example 512m or 2g. The units are k, m, g and t."
    )
    shuffle_partitions: Count = Field(
        2,
        ge=1,
        description="Number of Spark partitions for the state of the streaming query. You cannot change the value for"
        " an existing checkpoint.",
    )
    combine_tasks: Count = Field(
        2, ge=1, description="Number of parallel Python tasks that read and decode the records of a micro-batch."
    )
    class_archive: bool = Field(
        True,
        description="If true, the driver's JVM uses the class archive that `rebalance-monitor jars` created. With"
        " the archive, the JVM starts faster.",
    )
    log_level: str = Field(
        "ERROR", pattern="^(TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF)$", description="Log level of Spark."
    )
    conf: SparkConf = Field({}, description="Additional Spark properties, which the monitor passes to Spark unchanged.")


class PathSettings(Section):
    """Folders in which the monitor stores its data. A path can be any path that Spark can access."""

    checkpoint: AbsolutePath = Field(
        default_factory=lambda: _state_folder("checkpoint"),
        validate_default=True,
        description="Folder of the checkpoint, which contains the progress and the state of the streaming query.",
    )
    tables: TablesPath = Field(
        default_factory=lambda: _state_folder("tables"),
        validate_default=True,
        description="Root folder of the Delta tables. All clusters use this folder.",
    )

    @model_validator(mode="after")
    def _check_folders(self) -> Self:
        if not are_disjoint(self.checkpoint, self.tables):
            raise ValueError(
                "checkpoint and tables must be different folders, and neither folder may contain the other, because"
                " `rebuild` renames the checkpoint"
            )
        return self


class TableSettings(Section):
    """Limits on the size of the Delta tables."""

    retention_days: Days = Field(90, description="Maximum age of a row, in days. The monitor deletes older rows.")
    maintenance_interval_seconds: Seconds = Field(
        900,
        description="Seconds between two runs of the table maintenance, which merges small files and deletes old rows.",
    )
    versions_kept_hours: Hours = Field(
        2, description="Hours for which old versions of a table stay readable. A query that takes longer can fail."
    )


class MetricsSettings(Section):
    """The HTTP port, and the selection of the metrics in /metrics. The selection does not apply to tables and pages."""

    host: Host = Field(
        "127.0.0.1", description="Address on which the monitor listens. By default, only this machine can connect."
    )
    port: int = Field(
        9560, ge=0, le=65535, description="HTTP port of /metrics, the pages and the API. 0 selects a free port."
    )
    tls_certificate_file: OptionalFile = Field(
        "",
        description="PEM file with the TLS certificate of the port, followed by the other certificates of its chain. If"
        " this setting is empty, the port uses HTTP without TLS.",
    )
    tls_key_file: OptionalFile = Field(
        "",
        description="PEM file with the private key of the certificate in metrics.tls_certificate_file. Other users"
        " must not be able to read this file (chmod 600).",
    )
    basic_auth_users_file: OptionalFile = Field(
        "",
        description="File with the users who have access to the port. Each line has the format NAME:HASH. HASH is a"
        " bcrypt hash, for example from `htpasswd -B`. Other users of the machine must not be able to read this file"
        " (chmod 600). If this setting is empty, everybody has access.",
    )

    groups_allow: Pattern = Field(
        ".*",
        min_length=1,
        description="Regular expression (RE2) for the groups that /metrics shows. The expression must match the whole"
        " group id.",
    )
    groups_deny: Pattern = Field(
        "",
        description="Regular expression (RE2) for the groups that /metrics does not show, even if they match"
        " metrics.groups_allow. The default excludes no group.",
    )
    topics_allow: Pattern = Field(
        ".*",
        min_length=1,
        description="Regular expression (RE2) for the topics that /metrics shows. The expression must match the whole"
        " name of the topic. The totals of a group still include all its topics.",
    )
    topics_deny: Pattern = Field(
        "",
        description="Regular expression (RE2) for the topics that /metrics does not show, even if they match"
        " metrics.topics_allow. The default excludes no topic.",
    )
    granularity: Literal["group", "topic", "partition", "member"] = Field(
        "topic",
        description="Level of detail of /metrics for every group: group, topic, partition or member. Each level"
        " includes the levels before it in this list.",
    )
    top_k: Count = Field(
        20,
        ge=0,
        description="Number of groups per cluster that have the level of detail `partition` in /metrics, even if"
        " metrics.granularity is group or topic. The monitor selects the groups with the worst problems.",
    )
    include: tuple[MetricName, ...] = Field(
        (),
        description="Names of metrics that /metrics contains for every group. metrics.granularity does not apply to"
        " these metrics. dashboards/METRICS.md lists all names.",
    )
    exclude: tuple[MetricName, ...] = Field((), description="Names of metrics that /metrics never contains.")
    compatible_with: tuple[Literal["kafka_exporter", "kafka_lag_exporter"], ...] = Field(
        (),
        description="Names of other exporters. For every group and partition, /metrics also contains the metrics of"
        ' these exporters. For example, with ["kafka_exporter"], dashboards for kafka_exporter need no changes.',
    )
    max_series: Count = Field(
        1_500_000,
        ge=1_000,
        description="Maximum number of series in /metrics. If there are more series, the monitor first drops the series"
        " of the most detailed level. Within a level, the monitor first drops the series of the healthiest groups. The"
        " metric rebalance_monitor_dropped_series counts the dropped series. The monitor never drops the series that"
        " describe the monitor itself. The limit does not include about 15 standard series of the process.",
    )

    def address(self, port: int) -> str:
        """Return the URL of the port for a browser that runs on this machine.

        >>> MetricsSettings(host="0.0.0.0").address(9560), MetricsSettings(host="::1").address(9560)
        ('http://localhost:9560', 'http://[::1]:9560')
        """
        host = "localhost" if self.host in {"0.0.0.0", "::"} else self.host  # noqa: S104 - the address is only printed
        return f"{'https' if self.tls_key_file else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    @model_validator(mode="after")
    def _check_included_or_excluded(self) -> Self:
        if both := sorted({*self.include} & {*self.exclude}):
            raise ValueError(
                f"include and exclude both contain {both[0]}: remove the name from include or from exclude"
            )
        return self

    @model_validator(mode="after")
    def _check_key_and_certificate(self) -> Self:
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file belong together: set both, or remove both")
        return self


class SamplingSettings(Section):
    """Intervals and limits of the requests that the monitor sends to the brokers."""

    # At most 60, because above 100 s, no sample proves that a lag has ended (`lag_seconds`, rule 5).
    interval_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = Field(
        5,
        description="Seconds between two samples of end offsets and topic metadata, at most 60. If source.kind is"
        " admin-api, the monitor also polls the groups at this interval. If samples use more than 10 % of a CPU core,"
        " the monitor makes the interval longer, up to 15 seconds.",
    )
    # At most 1,800, because pages of the past find gaps between measurements in two hours (`past/silence.py`).
    lag_table_seconds: Annotated[float, Field(gt=0, le=1800, allow_inf_nan=False)] = Field(
        30,
        description="Seconds between two writes to the tables group_lag and partition_status, at most 1800. At each of"
        " these writes, the monitor also measures how evenly the members share lag and throughput.",
    )
    reconcile_seconds: Seconds = Field(
        600,
        description="Seconds between two checks of all committed offsets. A check compares the offsets in the"
        " monitor's state with the offsets that the coordinators return.",
    )
    request_timeout_seconds: Seconds = Field(15, description="Timeout of a request to a broker, in seconds.")


class EvaluationSettings(Section):
    """Rules for the evaluation of groups."""

    strategies: tuple[str, ...] = Field(
        ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range"),
        description="Built-in strategies for which the monitor computes the expected assignment.",
    )
    assignors: tuple[StrategyReference, ...] = Field(
        (), description="Your own strategies. Each entry has the format module:attribute."
    )
    storm_window_seconds: Seconds = Field(
        600,
        description="Length in seconds of the time window in which the monitor counts the rebalances, joins and leaves"
        " of a group.",
    )
    storm_rebalances: Count = Field(
        5,
        ge=2,
        description="A group has a rebalance storm if it has at least this number of rebalances within"
        " evaluation.storm_window_seconds.",
    )
    flap_threshold: Count = Field(
        3,
        ge=2,
        description="A member is flapping if it leaves the group at least this number of times within"
        " evaluation.storm_window_seconds. A leave counts only if the member joined earlier in this time window."
        " If a static member restarts, this always counts as a leave.",
    )
    stuck_after_seconds: Seconds = Field(
        300,
        description="Longest normal duration of a rebalance or a deployment, in seconds. The monitor reports some"
        " problems only if they last longer than this duration, for example a partition without an owner.",
    )
    allowed_lag: Count = Field(
        0,
        ge=0,
        description="If a partition has at most this number of unread records, its status is OK. The conditions"
        " silent_group, silent_static_member and long_commit_gap ignore such a partition, but the lag includes it.",
    )

    @field_validator("strategies")
    @classmethod
    def _check_strategies(cls, strategies: tuple[str, ...]) -> tuple[str, ...]:
        from assignors import BUILT_IN  # noqa: PLC0415 - importing the settings must not import the strategies

        unknown = sorted(set(strategies) - set(BUILT_IN))
        if unknown:
            raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(sorted(BUILT_IN))}")
        return tuple(dict.fromkeys(strategies))  # a duplicate name would create two rows and two series of one verdict
