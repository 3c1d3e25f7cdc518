"""Load the settings from a TOML file and the environment. The environment has precedence."""

from __future__ import annotations

import os
from collections import Counter
from itertools import chain, combinations
from pathlib import Path

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from typing_extensions import Self

from streaming.config.environment import ENVIRONMENT_PREFIX, is_setting
from streaming.config.groups import GroupEntry, LimitsByGroup
from streaming.config.links import LinkSettings
from streaming.config.private_files import is_tolerated
from streaming.config.redactor import Redactor
from streaming.config.refusals import refusal_line, unreadable_file_line, unreadable_variable_line
from streaming.config.secret_settings import secrets_in, without_credentials
from streaming.config.security import read_secrets
from streaming.config.settings import (
    ClusterSection,
    ClusterSettings,
    EvaluationSettings,
    KafkaSettings,
    MetricsSettings,
    PathSettings,
    SamplingSettings,
    SourceSettings,
    SparkSettings,
    TableSettings,
)
from streaming.config.types.paths import are_disjoint
from streaming.errors import STAYS, RemedyError


class ConfigError(RemedyError):
    """Error: the configuration is invalid. The message has one line for each error."""

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
    paths: PathSettings = Field(default_factory=dict, validate_default=True)
    tables: TableSettings = TableSettings()
    metrics: MetricsSettings = MetricsSettings()
    links: LinkSettings = LinkSettings()
    sampling: SamplingSettings = SamplingSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    groups: tuple[GroupEntry, ...] = ()

    def limits_by_group(self) -> LimitsByGroup:
        """Return the limits that the entries `[[groups]]` set for each group."""
        return LimitsByGroup(self.groups)

    def of_clusters(self) -> tuple[Settings, ...]:
        """Return the settings of each cluster. The cluster of [kafka] comes first.

        >>> more = ClusterSettings(bootstrap_servers="b:1")
        >>> [one.kafka.cluster for one in Settings(clusters={"eu": more}).of_clusters()]
        ['default', 'eu']
        """
        more = (self._of_cluster(section, cluster) for section, cluster in self.clusters.items())
        return (self.model_copy(update={"clusters": {}}), *more)

    def of_cluster(self, name: str | None) -> Settings:
        """Return the settings of one cluster. `name` is the cluster's name in tables and labels.

        Raises ConfigError if the name is unknown, or if the name is None and there are several clusters.
        """
        of_clusters = {one.kafka.cluster: one for one in self.of_clusters()}
        if name is None and len(of_clusters) == 1:
            return self
        if name not in of_clusters:
            problem = "several clusters are configured" if name is None else f"no cluster {name!r} is configured"
            raise ConfigError(f"{problem}: set --cluster to one of {', '.join(of_clusters)}")
        return of_clusters[name]

    def exposed_files(self) -> list[Path]:
        """Return each file that contains a secret and is accepted only because of rule 3 of `private_files`."""
        of_port = (self.metrics.tls_key_file, self.metrics.basic_auth_users_file)
        of_brokers = chain.from_iterable(one.kafka.security.secret_files() for one in self.of_clusters())
        files = {*of_brokers, *map(Path, filter(None, of_port))}
        return sorted(file for file in files if file.exists() and is_tolerated(file))

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
    def _cluster_names_differ(self) -> Self:
        of_clusters = self.of_clusters()
        names = Counter(one.kafka.cluster for one in of_clusters)
        if duplicates := [name for name, sections in names.items() if sections > 1]:
            raise ValueError(
                f"clusters: two clusters have the name {duplicates[0]!r}: tables and metrics cannot distinguish them"
            )
        folders = [one.paths.checkpoint for one in of_clusters] + [self.paths.tables]
        for one, other in combinations(folders, 2):
            if not are_disjoint(one, other):
                both = " and ".join(map(without_credentials, (one, other)))
                raise ValueError(f"clusters: {both} must be different folders, and neither may contain the other")
        return self


def load_settings(file: Path | None) -> Settings:
    """Read the effective settings. Raises ConfigError with one line for each error."""

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
    if file is not None and not file.is_file():  # pydantic would ignore the file and use the default values
        raise ConfigError(f"{file} is not a regular file: specify the path of a TOML file, not a pipe or a device")
    try:
        settings = FromFile()
    except ValidationError as invalid:
        lines = [refusal_line(error, Settings) for error in invalid.errors()]
        raise ConfigError("\n".join([*lines, *unknown])) from None
    except SettingsError as unreadable:
        raise ConfigError("\n".join([unreadable_variable_line(unreadable), *unknown])) from None
    except (OSError, ValueError) as unreadable:
        raise ConfigError("\n".join([unreadable_file_line(file, unreadable), *unknown])) from None
    except RecursionError:
        raise ConfigError("\n".join(["a setting has too many nested lists or tables", *unknown])) from None
    if unknown:
        raise ConfigError("\n".join(unknown))
    return settings


def forget_secrets() -> None:
    """Remove the settings from the environment, so that child processes of libraries do not inherit secrets."""
    for name in filter(is_setting, list(os.environ)):
        del os.environ[name]


def create_redactor(settings: Settings) -> Redactor:
    """Return a redactor for the secrets in the settings, and for the secrets in the files that the settings name."""
    secrets = set(secrets_in(settings))
    for security in {id(one.kafka.security): one.kafka.security for one in settings.of_clusters()}.values():
        file_secrets = read_secrets(security)
        secrets.update(
            filter(None, (file_secrets.password, file_secrets.key_password, file_secrets.oauth_client_secret))
        )
    return Redactor(secrets)


def _unknown_variables() -> list[str]:
    """Return one error line for each environment variable whose name contains an unknown section.

    pydantic ignores such variables. A variable without `__` is not an error, because Kubernetes sets variables such as
    REBALANCE_MONITOR_SERVICE_HOST. The entries [[groups]] have no names, so a single variable contains all entries.
    """
    entries_variable = f"{ENVIRONMENT_PREFIX}GROUPS"
    sections = ", ".join(name for name in Settings.model_fields if name != "groups")
    unknown = []
    for name in sorted(os.environ):
        section, delimiter, _ = name.upper().removeprefix(ENVIRONMENT_PREFIX).partition("__")
        if not name.upper().startswith(ENVIRONMENT_PREFIX) or not delimiter:
            continue
        if section == "GROUPS":
            unknown.append(f"{name}: no such setting: write all entries as a JSON list into {entries_variable}")
        elif section.lower() not in Settings.model_fields:
            unknown.append(f"{name}: no such section: the sections are {sections}")
    return unknown
