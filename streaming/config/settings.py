"""Every setting with its default and its meaning. `rebalance-monitor config check` prints the descriptions."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from streaming.config.redaction import is_for_launch, without_credentials
from streaming.config.section import Section
from streaming.config.security import SecuritySettings

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _state_home() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kafka-rebalance-monitor"


def _each_has_a_port(servers: str) -> str:
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if "@" in server or "://" in server:
            raise ValueError("a server is host:port, without a scheme, a user or a password")
        if not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 65_536:
            raise ValueError(f"{server.strip()!r} is not host:port")
    return servers


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).expanduser().absolute())


def _fit_for_a_folder(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ValueError(
            "a section's name is a folder's and part of variables, too: lower-case letters, digits, single underscores;"
            " any other name goes into its setting cluster"
        )
    return name


def _without_user(master: str) -> str:
    if "@" in master:
        raise ValueError("a master has no user and no password: it stands on a command line")
    return master


def _without_users_at_launch(conf: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, value in conf.items():
        text = value.get_secret_value()
        if is_for_launch(name) and without_credentials(text) != text:
            raise ValueError(
                f"{name} stands on a command line, where no user, password or query belongs: copy the files here, or"
                " let spark.jars.ivySettings name a file with the address of the repository"
            )
    return conf


BootstrapServers = Annotated[str, AfterValidator(_each_has_a_port)]
SparkMaster = Annotated[str, AfterValidator(_without_user)]
SparkConf = Annotated[dict[str, SecretStr], AfterValidator(_without_users_at_launch)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
ClusterSection = Annotated[str, AfterValidator(_fit_for_a_folder)]


class KafkaSettings(Section):
    """The cluster to watch."""

    bootstrap_servers: BootstrapServers = Field(
        "localhost:9092", description="Addresses of brokers as host:port, separated by commas."
    )
    cluster: str = Field("default", min_length=1, description="Name of the cluster in tables and labels.")
    connect_timeout_seconds: Seconds = Field(
        30, description="Time to wait for a broker at start. After this time the connection fails."
    )
    security: SecuritySettings = SecuritySettings()


OFFSETS_TOPIC_SOURCE: Final = "offsets-topic"
ADMIN_API_SOURCE: Final = "admin-api"
SourceKind = Literal["offsets-topic", "admin-api"]


class ClusterSettings(Section):
    """A further cluster, watched in addition to the cluster of [kafka]. It has its own query."""

    bootstrap_servers: BootstrapServers = Field(description="Addresses of brokers as host:port, separated by commas.")
    cluster: str | None = Field(
        None,
        min_length=1,
        description="Name of the cluster in tables and labels. If not set: the name of the section.",
    )
    connect_timeout_seconds: Seconds | None = Field(
        None, description="Time to wait for a broker. If not set: the value in [kafka]."
    )
    source_kind: SourceKind | None = Field(
        None, description="Value of source.kind for this cluster. If not set: the value in [source]."
    )
    checkpoint: AbsolutePath | None = Field(
        None,
        description="Folder of the checkpoint of this cluster's query. If not set: the folder NAME in the folder"
        " paths.checkpoint-clusters, where NAME is the name of the section.",
    )
    security: SecuritySettings | None = Field(
        None, description="A complete section for this cluster. If not set: [kafka.security]. The two are not merged."
    )


class SourceSettings(Section):
    """Where the monitor reads groups and committed offsets."""

    kind: SourceKind = Field(
        OFFSETS_TOPIC_SOURCE,
        description="offsets-topic: read __consumer_offsets. admin-api: ask the brokers every"
        " sampling.interval_seconds. Use admin-api if you cannot read that topic; less is known then. The value cannot"
        " change after the checkpoint is created.",
    )
    max_records_per_batch: int = Field(2_000_000, ge=1, description="Maximum number of records in one micro-batch.")
    trigger_seconds: Seconds = Field(2, description="Interval between micro-batches while there are new records.")


class SparkSettings(Section):
    """Spark."""

    master: SparkMaster = Field(
        "local[2]",
        description="Spark master URL. local[n] runs n tasks at a time; with several clusters, n tasks for each"
        " cluster.",
    )
    driver_memory: str = Field("1g", description="Heap size of the driver's JVM.")
    shuffle_partitions: int = Field(
        2, ge=1, description="Number of state partitions. The value cannot change after the checkpoint is created."
    )
    combine_tasks: int = Field(2, ge=1, description="Number of Python tasks that read and reduce the log in parallel.")
    log_level: str = Field(
        "ERROR", pattern="^(TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF)$", description="Spark's log level."
    )
    conf: SparkConf = Field({}, description="Further Spark properties, passed to Spark unchanged.")


class PathSettings(Section):
    """Where the monitor stores its data. Any path that Spark can reach."""

    checkpoint: AbsolutePath = Field(
        default_factory=lambda: str(_state_home() / "checkpoint"),
        description="Folder of the checkpoint: the query's progress.",
    )
    tables: AbsolutePath = Field(
        default_factory=lambda: str(_state_home() / "tables"),
        description="Root folder of the Delta tables. All clusters share it.",
    )

    @model_validator(mode="after")
    def _are_apart(self) -> Self:
        if not lie_apart(self.checkpoint, self.tables):
            raise ValueError("checkpoint and tables must not lie in each other: `rebuild` moves the checkpoint away")
        return self


def lie_apart(one: str, other: str) -> bool:
    """Whether neither folder is in the other, nor both are one.

    >>> lie_apart("/x/a", "/x/ab"), lie_apart("/x", "/x/a"), lie_apart("/x/", "/x")
    (True, False, False)
    """
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return not one.startswith(other) and not other.startswith(one)


class TableSettings(Section):
    """How the monitor limits the size of the Delta tables."""

    retention_days: int = Field(90, ge=1, description="Rows older than this number of days are deleted.")
    maintenance_interval_seconds: Seconds = Field(
        900, description="Interval of table maintenance, which merges small files and deletes old rows."
    )
    versions_kept_hours: int = Field(
        2,
        ge=1,
        description="How long a reader can use the table version that it opened. Time travel has the same limit.",
    )


def _pattern(pattern: str) -> str:
    from streaming.config.names import check_pattern  # noqa: PLC0415 - pyarrow is for those who match names

    check_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_pattern)]
"""A regular expression of RE2 for whole names."""


class MetricsSettings(Section):
    """The HTTP port, and how much detail /metrics shows. Tables and pages have no such limits."""

    host: str = Field(
        "127.0.0.1", description="Address to listen on. The default accepts connections from this machine only."
    )
    port: int = Field(9560, ge=0, le=65535, description="Port of /metrics and the pages. 0 selects a free port.")
    tls_certificate_file: str = Field(
        "", description="PEM file with a certificate and its chain. If set, the port uses TLS."
    )
    tls_key_file: str = Field(
        "", description="PEM file with the private key of that certificate, closed to other users (chmod 600)."
    )
    basic_auth_users_file: str = Field(
        "",
        description="File of the users who can read the port, one NAME:HASH per line. HASH is bcrypt, as written by"
        " htpasswd -B. Set mode 600 (chmod 600). If empty, everybody can read the port.",
    )

    groups_allow: Pattern = Field(
        ".*", min_length=1, description="Groups that /metrics shows: a regular expression (RE2) for the whole group id."
    )
    groups_deny: Pattern = Field(
        "",
        description="Groups that /metrics does not show, even if groups_allow matches. If empty, no group is denied.",
    )
    topics_allow: Pattern = Field(
        ".*",
        min_length=1,
        description="Topics that /metrics shows: a regular expression (RE2) for the whole name. The sums of a group"
        " still include all its topics.",
    )
    topics_deny: Pattern = Field(
        "",
        description="Topics that /metrics does not show, even if topics_allow matches. If empty, no topic is denied.",
    )
    granularity: Literal["group", "topic", "partition", "member"] = Field(
        "partition",
        description="Finest detail of groups in /metrics: group, topic, partition or member. Each value includes the"
        " values before it. Only member adds labels of members.",
    )
    compatible_with: tuple[Literal["kafka_exporter", "kafka_lag_exporter"], ...] = Field(
        ("kafka_exporter",),
        description="Exporters whose metrics /metrics also has, with their names and labels.",
    )
    top_k: int = Field(
        0,
        ge=0,
        description="Number of worst groups that /metrics shows at the full granularity. The other groups are shown at"
        " group level. 0: all groups at the full granularity.",
    )
    max_series: int = Field(
        1_500_000,
        ge=1_000,
        description="Maximum number of series in /metrics. Above this number the finest series are left out first, of"
        " the groups with the least trouble first. rebalance_monitor_dropped_series counts them.",
    )

    @model_validator(mode="after")
    def _key_and_certificate_go_together(self) -> Self:
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file go together: set both or neither")
        return self


class SamplingSettings(Section):
    """What the monitor asks the brokers in addition to reading the log."""

    interval_seconds: Seconds = Field(
        5,
        description="Interval between samples of end offsets and topic metadata. With source.kind admin-api, also of"
        " groups.",
    )
    lag_table_seconds: Seconds = Field(30, description="Interval between writes of lag to the table group_lag.")
    reconcile_seconds: Seconds = Field(
        600, description="Interval between comparisons of all committed offsets with those of the coordinators."
    )
    request_timeout_seconds: Seconds = Field(15, description="Maximum duration of one request to a broker.")


class EvaluationSettings(Section):
    """How the monitor evaluates groups."""

    strategies: tuple[str, ...] = Field(
        ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range"),
        description="Strategies for which the monitor computes expected assignments.",
    )
    assignors: tuple[str, ...] = Field((), description="Your own strategies, each as module:attribute.")
    storm_window_seconds: Seconds = Field(
        600, description="Time window in which rebalances, joins and departures of members are counted."
    )
    storm_rebalances: int = Field(
        5, ge=2, description="Number of rebalances within storm_window_seconds that is a rebalance storm."
    )
    flap_threshold: int = Field(
        3,
        ge=2,
        description="Number of times that a member joins and leaves within storm_window_seconds to be a flapping"
        " member.",
    )
    stuck_after_seconds: Seconds = Field(
        300,
        description="Longest normal time of a rebalance or a deployment. Partitions without an owner or a commit are"
        " a condition only after this time.",
    )
    allowed_lag: int = Field(
        0,
        ge=0,
        description="A lag of at most this number of records counts as no lag, for the status of partitions and for"
        " silent groups and members.",
    )

    @field_validator("strategies")
    @classmethod
    def _are_known(cls, strategies: tuple[str, ...]) -> tuple[str, ...]:
        from assignors import BUILT_IN  # noqa: PLC0415 - settings stay importable where only they are needed

        unknown = sorted(set(strategies) - set(BUILT_IN))
        if unknown:
            raise ValueError(f"unknown {', '.join(unknown)}; known: {', '.join(sorted(BUILT_IN))}")
        return tuple(dict.fromkeys(strategies))  # one named twice would be two rows and two series of one verdict
