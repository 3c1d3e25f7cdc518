"""Every setting, its default and what it is for. The descriptions are the reference the README prints."""

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

    bootstrap_servers: BootstrapServers = Field("localhost:9092", description="host:port, several separated by commas")
    cluster: str = Field("default", min_length=1, description="name of the cluster in tables and labels")
    connect_timeout_seconds: Seconds = Field(30, description="how long to wait for a broker at start before giving up")
    security: SecuritySettings = SecuritySettings()


OFFSETS_TOPIC_SOURCE: Final = "offsets-topic"
ADMIN_API_SOURCE: Final = "admin-api"
SourceKind = Literal["offsets-topic", "admin-api"]


class ClusterSettings(Section):
    """One more cluster, watched beside that of [kafka] by a query of its own."""

    bootstrap_servers: BootstrapServers = Field(description="host:port, several separated by commas")
    cluster: str | None = Field(
        None, min_length=1, description="name of the cluster in tables and labels; not set: that of the section"
    )
    connect_timeout_seconds: Seconds | None = Field(None, description="not set: as in [kafka]")
    source_kind: SourceKind | None = Field(None, description="source.kind of this cluster; not set: as in [source]")
    checkpoint: AbsolutePath | None = Field(
        None, description="its query's progress; not set: a folder of the section's name in paths.checkpoint-clusters"
    )
    security: SecuritySettings | None = Field(
        None, description="a section of its own, taken whole; not set: as in [kafka.security]"
    )


class SourceSettings(Section):
    """Where groups and commits are known from."""

    kind: SourceKind = Field(
        OFFSETS_TOPIC_SOURCE,
        description="offsets-topic reads __consumer_offsets; admin-api asks the brokers every sampling.interval_seconds"
        " where that topic cannot be read, and knows less; frozen when the checkpoint is created",
    )
    max_records_per_batch: int = Field(2_000_000, ge=1, description="records one micro-batch takes at most")
    trigger_seconds: Seconds = Field(2, description="how often a micro-batch starts when there is something new")


class SparkSettings(Section):
    """Spark itself."""

    master: SparkMaster = Field(
        "local[2]",
        description="Spark master URL; local[n] is n tasks at a time, with several clusters for each of them",
    )
    driver_memory: str = Field("1g", description="heap of the driver's JVM")
    shuffle_partitions: int = Field(2, ge=1, description="state partitions; frozen when the checkpoint is created")
    combine_tasks: int = Field(2, ge=1, description="Python tasks that read and reduce the log side by side")
    ui: bool = Field(False, description="whether Spark's own web page is served")
    log_level: str = Field(
        "ERROR", pattern="^(TRACE|DEBUG|INFO|WARN|ERROR|FATAL|OFF)$", description="Spark's log level"
    )
    conf: SparkConf = Field({}, description="further Spark settings, as they are")


class PathSettings(Section):
    """Where things are kept. Any path Spark can reach."""

    checkpoint: AbsolutePath = Field(
        default_factory=lambda: str(_state_home() / "checkpoint"), description="the query's progress"
    )
    tables: AbsolutePath = Field(
        default_factory=lambda: str(_state_home() / "tables"), description="root of the Delta tables, of all clusters"
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
    """How the Delta tables are kept small."""

    retention_days: int = Field(90, ge=1, description="rows older than this are deleted")
    tidy_seconds: Seconds = Field(900, description="how often small files are merged and old rows deleted")
    versions_kept_hours: int = Field(
        2,
        ge=1,
        description="how long a reader may go on with a version of a table that it opened; time travel ends there, too",
    )


def _pattern(pattern: str) -> str:
    from streaming.config.names import check_pattern  # noqa: PLC0415 - pyarrow is for those who match names

    check_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_pattern)]
"""A regular expression of RE2 for whole names."""


class MetricsSettings(Section):
    """The HTTP port, and how much /metrics shows; tables and pages are always whole."""

    host: str = Field("127.0.0.1", description="address to listen on; loopback unless you say otherwise")
    port: int = Field(9560, ge=0, le=65535, description="port of /metrics and the pages; 0 takes a free one")
    tls_certificate_file: str = Field("", description="PEM file of a certificate and its chain: the port speaks TLS")
    tls_key_file: str = Field("", description="PEM file of its private key, for its owner's eyes only (chmod 600)")
    basic_auth_users_file: str = Field(
        "", description="who may ask: NAME:HASH a line, bcrypt as htpasswd -B writes it, chmod 600; empty: everybody"
    )

    groups_allow: Pattern = Field(
        ".*", min_length=1, description="groups that /metrics shows: a regular expression (RE2) for the whole group id"
    )
    groups_deny: Pattern = Field("", description="groups that it does not, though allowed; empty denies none")
    topics_allow: Pattern = Field(
        ".*",
        min_length=1,
        description="topics that /metrics shows, likewise; a group's own sums are of all its topics all the same",
    )
    topics_deny: Pattern = Field("", description="topics that it does not, though allowed; empty denies none")
    granularity: Literal["group", "topic", "partition", "member"] = Field(
        "partition",
        description="how finely /metrics tells of groups, each with all before it; only member has labels of members",
    )
    compatible_with: tuple[Literal["kafka_exporter", "kafka_lag_exporter"], ...] = Field(
        ("kafka_exporter",),
        description="exporters whose metrics /metrics has beside its own, by their names and labels",
    )
    top_k: int = Field(
        0, ge=0, description="so many groups, the worst, are shown so finely, the others by group; 0: all groups are"
    )
    max_series: int = Field(
        1_500_000,
        ge=1_000,
        description="series that /metrics has at most: beyond that the finest go first, of the groups least in trouble;"
        " rebalance_monitor_dropped_series tells how many",
    )

    @model_validator(mode="after")
    def _key_and_certificate_go_together(self) -> Self:
        if bool(self.tls_certificate_file) != bool(self.tls_key_file):
            raise ValueError("tls_certificate_file and tls_key_file go together: set both or neither")
        return self


class SamplingSettings(Section):
    """What is asked of the brokers beside the log."""

    interval_seconds: Seconds = Field(
        5,
        description="how often end offsets and topic metadata are sampled; with source.kind admin-api, groups, too",
    )
    lag_table_seconds: Seconds = Field(30, description="how often lag is written to the table group_lag")
    reconcile_seconds: Seconds = Field(
        600, description="how often all committed offsets are compared with what the coordinators know"
    )
    request_timeout_seconds: Seconds = Field(15, description="how long one request to a broker may take")


class JudgementSettings(Section):
    """What is judged."""

    strategies: tuple[str, ...] = Field(
        ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range"),
        description="strategies expected assignments are made by",
    )
    assignors: tuple[str, ...] = Field((), description="your own strategies, each as module:attribute")
    assignor_limit_seconds: Seconds = Field(10, description="how long one of yours may take for a group")
    storm_window_seconds: Seconds = Field(600, description="over how long rebalances, comings and goings are counted")
    storm_rebalances: int = Field(5, ge=2, description="rebalances within that time that are a storm")
    flaps: int = Field(3, ge=2, description="times a member comes and goes within that time to be called flapping")
    cooperative_rounds: int = Field(
        5, ge=3, description="cooperative generations in a row in which nothing changed that are taken for endless"
    )
    round_seconds: Seconds = Field(
        300,
        description="how long one rebalance may leave partitions without an owner or a commit, or a deployment take",
    )
    allowed_lag: int = Field(
        0,
        ge=0,
        description="a lag of at most this many records counts as none for a partition's status and for silence",
    )

    @field_validator("strategies")
    @classmethod
    def _are_known(cls, strategies: tuple[str, ...]) -> tuple[str, ...]:
        from assignors import BUILT_IN  # noqa: PLC0415 - settings stay importable where only they are needed

        unknown = sorted(set(strategies) - set(BUILT_IN))
        if unknown:
            raise ValueError(f"unknown {', '.join(unknown)}; known: {', '.join(sorted(BUILT_IN))}")
        return tuple(dict.fromkeys(strategies))  # one named twice would be two rows and two series of one verdict
