"""Settings from a TOML file and the environment; the environment wins."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from typing_extensions import Self

from streaming.config.private_files import is_tolerated
from streaming.config.settings import (
    ClusterSection,
    ClusterSettings,
    JudgementSettings,
    KafkaSettings,
    MetricsSettings,
    PathSettings,
    SamplingSettings,
    SourceSettings,
    SparkSettings,
    TableSettings,
    lie_apart,
)
from streaming.errors import STAYS, RemedyError

ENVIRONMENT_PREFIX = "REBALANCE_MONITOR_"
REDACTED = "*********(redacted)"
_SECRET_NAME = re.compile(r"secret|password|passphrase|token|credential|access[.-]?key|jaas", re.IGNORECASE)
_NO_SECRET_NAME = re.compile(r"_(file|endpoint)$")  # where a secret is, or comes from
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class ConfigError(RemedyError):
    """The configuration cannot be used; the message names every error at once, a line each."""

    exit_code = STAYS


class Settings(BaseSettings):
    """The whole configuration. `REBALANCE_MONITOR_KAFKA__CLUSTER=prod` sets `cluster` in section `[kafka]`."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__"
    )

    kafka: KafkaSettings = KafkaSettings()
    clusters: dict[ClusterSection, ClusterSettings] = {}
    source: SourceSettings = SourceSettings()
    spark: SparkSettings = SparkSettings()
    paths: PathSettings = PathSettings()
    tables: TableSettings = TableSettings()
    metrics: MetricsSettings = MetricsSettings()
    sampling: SamplingSettings = SamplingSettings()
    judgement: JudgementSettings = JudgementSettings()

    def of_clusters(self) -> tuple[Settings, ...]:
        """The settings of each cluster as if it were the only one: that of [kafka] first, as it always was.

        >>> more = ClusterSettings(bootstrap_servers="b:1")
        >>> [one.kafka.cluster for one in Settings(clusters={"eu": more}).of_clusters()]
        ['default', 'eu']
        """
        more = (self._of_cluster(section, cluster) for section, cluster in self.clusters.items())
        return (self.model_copy(update={"clusters": {}}), *more)

    def of_cluster(self, name: str | None) -> Settings:
        """The settings of one cluster, by its name in tables and labels; None: of the only one. Raises ConfigError."""
        of_clusters = {one.kafka.cluster: one for one in self.of_clusters()}
        if name is None and len(of_clusters) == 1:
            return self
        if name not in of_clusters:
            wrong = "several clusters are configured" if name is None else f"no cluster {name!r} is configured"
            raise ConfigError(f"{wrong}: choose by --cluster one of {', '.join(of_clusters)}")
        return of_clusters[name]

    def exposed_files(self) -> list[Path]:
        """Files with secrets that are used although others may read them."""
        of_port = (self.metrics.tls_key_file, self.metrics.basic_auth_users_file)
        of_brokers = chain.from_iterable(one.kafka.security.secret_files() for one in self.of_clusters())
        named = {*of_brokers, *map(Path, filter(None, of_port))}
        return sorted(file for file in named if file.exists() and is_tolerated(file))

    def _of_cluster(self, section: str, cluster: ClusterSettings) -> Settings:
        kafka = KafkaSettings(
            bootstrap_servers=cluster.bootstrap_servers,
            cluster=cluster.cluster or section,
            connect_timeout_seconds=cluster.connect_timeout_seconds or self.kafka.connect_timeout_seconds,
            security=cluster.security or self.kafka.security,
        )
        checkpoint = cluster.checkpoint or f"{self.paths.checkpoint.rstrip('/')}-clusters/{section}"
        return self.model_copy(
            update={
                "kafka": kafka,
                "clusters": {},
                "source": self.source.model_copy(update={"kind": cluster.source_kind or self.source.kind}),
                "paths": self.paths.model_copy(update={"checkpoint": checkpoint}),
            }
        )

    @model_validator(mode="after")
    def _clusters_are_told_apart(self) -> Self:
        of_clusters = self.of_clusters()
        names = Counter(one.kafka.cluster for one in of_clusters)
        if twice := [name for name, sections in names.items() if sections > 1]:
            raise ValueError(f"clusters: two are called {twice[0]!r}: tables and metrics would take them for one")
        folders = [one.paths.checkpoint for one in of_clusters] + [self.paths.tables]
        for one, other in combinations(folders, 2):
            if not lie_apart(one, other):
                raise ValueError(f"clusters: {one} and {other} must not lie in each other")
        return self


def load_settings(file: Path | None) -> Settings:
    """Read the effective settings. Raises ConfigError with one line for each thing that is wrong."""

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=file) if file else None
            return (init_settings, env_settings, *([toml] if toml else []))

    unknown = _unknown_variables()
    try:
        settings = FromFile()
    except ValidationError as invalid:
        raise ConfigError("\n".join([*map(_line, invalid.errors()), *unknown])) from None
    except SettingsError as unreadable:
        remedy = "lists and tables are written as JSON"
        raise ConfigError("\n".join([f"environment: {unreadable}: {remedy}", *unknown])) from None
    except (OSError, ValueError) as unreadable:
        raise ConfigError("\n".join([f"{file}: {unreadable}", *unknown])) from None
    if unknown:
        raise ConfigError("\n".join(unknown))
    return settings


def forget_secrets() -> None:
    """Take secrets out of the environment, so that no process we start inherits them."""
    for name in list(os.environ):
        if name.upper().startswith(ENVIRONMENT_PREFIX) and is_secret(name.lower()):
            del os.environ[name]


def _unknown_variables() -> list[str]:
    """Name variables meant for a section there is none of; pydantic would pass over them without a word.

    Only those with the delimiter: Kubernetes sets REBALANCE_MONITOR_SERVICE_HOST and more by itself.
    """
    sections = ", ".join(Settings.model_fields)
    meant = (name for name in sorted(os.environ) if name.upper().startswith(ENVIRONMENT_PREFIX) and "__" in name)
    return [
        f"{name}: no such section; there are {sections}"
        for name in meant
        if name[len(ENVIRONMENT_PREFIX) :].partition("__")[0].lower() not in Settings.model_fields
    ]


def _line(error: Any) -> str:  # noqa: ANN401 - pydantic's error details
    place = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return f"{place}: no such setting"
    is_section = isinstance(error["input"], dict)
    given = "" if is_secret(place) or is_section else f" (got {shown(error['input'], place)!r})"
    return f"{place + ': ' if place else ''}{shown(error['msg'].removeprefix('Value error, '))}{given}"


def is_secret(name: str) -> bool:
    """Whether a setting of this name must not be shown."""
    return bool(_SECRET_NAME.search(name)) and not _NO_SECRET_NAME.search(name)


def shown(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any part of a settings document
    """The document with every secret replaced, for `config check`."""
    if isinstance(value, dict):
        return {key: shown(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(inner, name) for inner in value]
    if isinstance(value, SecretStr):
        return REDACTED
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        return value
    return REDACTED if is_secret(name) else _URL_CREDENTIALS.sub(REDACTED, value)
