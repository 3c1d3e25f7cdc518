"""Test the configuration of several clusters: each has complete settings and its own checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.cli.config import config
from streaming.config.load import ConfigError, Settings, load_settings
from streaming.config.security import read_secrets

PATHS = "[paths]\ncheckpoint = '/x/checkpoint'\ntables = '/x/tables'\n"
ONE = f"[kafka]\ncluster = 'prod'\nbootstrap_servers = 'a:1'\n{PATHS}"
MORE = "[clusters.eu]\nbootstrap_servers = 'eu:1'\n[clusters.us_east]\nbootstrap_servers = 'us:1,us:2'\n"


def loaded(file: Path, content: str) -> Settings:
    file.write_text(content)
    return load_settings(file)


def error(file: Path, content: str) -> str:
    with pytest.raises(ConfigError) as raised:
        loaded(file, content)
    (line,) = str(raised.value).splitlines()
    return line


def test_the_settings_of_a_single_cluster_do_not_change(file: Path) -> None:
    settings = loaded(file, ONE)
    assert settings.of_clusters() == (settings,)


def test_a_further_cluster_does_not_change_the_settings_of_the_first(file: Path) -> None:
    """A different checkpoint would read the log again and count from different rows."""
    alone, (first, *_) = loaded(file, ONE), loaded(file, ONE + MORE).of_clusters()
    assert first.model_dump() == alone.model_dump()


def test_each_cluster_has_its_own_name_address_and_checkpoint_and_all_share_the_tables(file: Path) -> None:
    of_clusters = loaded(file, ONE + MORE).of_clusters()
    assert [(one.kafka.cluster, one.kafka.bootstrap_servers, one.paths.checkpoint) for one in of_clusters] == [
        ("prod", "a:1", "/x/checkpoint"),
        ("eu", "eu:1", "/x/checkpoint-clusters/eu"),
        ("us_east", "us:1,us:2", "/x/checkpoint-clusters/us_east"),
    ]
    assert {one.paths.tables for one in of_clusters} == {"/x/tables"}


def test_a_cluster_inherits_missing_settings_from_the_first(file: Path) -> None:
    secured = "[kafka]\nconnect_timeout_seconds = 7\n[kafka.security]\nprotocol = 'SSL'\n[source]\nkind = 'admin-api'\n"
    own_settings = "connect_timeout_seconds = 3\nsource_kind = 'offsets-topic'\n[clusters.eu.security]\n"
    (_, eu) = loaded(file, f"{secured}[clusters.eu]\nbootstrap_servers = 'eu:1'\n").of_clusters()
    assert (eu.kafka.connect_timeout_seconds, eu.kafka.security.protocol, eu.source.kind) == (7, "SSL", "admin-api")
    (_, eu) = loaded(file, f"{secured}[clusters.eu]\nbootstrap_servers = 'eu:1'\n{own_settings}").of_clusters()
    assert (eu.kafka.connect_timeout_seconds, eu.kafka.security.protocol, eu.source.kind) == (
        3,
        "PLAINTEXT",
        "offsets-topic",
    )


def test_a_cluster_with_its_own_security_inherits_no_credential(file: Path) -> None:
    """If single keys were inherited, a missing password would be replaced by the password of a different cluster."""
    scram = "protocol = 'SASL_PLAINTEXT'\nmechanism = 'PLAIN'\nusername = 'me'\n"
    first = f"[kafka.security]\n{scram}password = 'hunter2'\n[clusters.eu]\nbootstrap_servers = 'eu:1'\n"
    message = error(file, f"{first}[clusters.eu.security]\n{scram}")
    assert message == "clusters.eu.security: mechanism = 'PLAIN' needs password or password_file"


def test_a_cluster_can_be_set_by_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password of digits stays a text and does not become a number."""
    for name, value in {
        "BOOTSTRAP_SERVERS": "eu:1",
        "CLUSTER": "EU / prod",
        "SECURITY__PROTOCOL": "SASL_PLAINTEXT",
        "SECURITY__MECHANISM": "PLAIN",
        "SECURITY__USERNAME": "7",
        "SECURITY__PASSWORD": "0123",
    }.items():
        monkeypatch.setenv(f"REBALANCE_MONITOR_CLUSTERS__EU_2__{name}", value)
    (_, eu) = load_settings(None).of_clusters()
    assert (eu.kafka.cluster, eu.kafka.security.username) == ("EU / prod", "7")
    assert read_secrets(eu.kafka.security).password == "0123"  # noqa: S105 - the test's own
    assert eu.paths.checkpoint.endswith("checkpoint-clusters/eu_2"), "the path has the key, not the cluster's label"


@pytest.mark.parametrize(
    ("content", "message", "why"),
    [
        ("[clusters.eu]\n", "clusters.eu.bootstrap_servers: Field required", "the address is not inherited"),
        (
            "[clusters.eu]\nbootstrap_servers = 'eu'",
            "address 1 is not host:port",
            "checked like the first cluster's address",
        ),
        (
            "[clusters.eu]\nbootstrap_servers = 'eu:1'\nclutser = 'x'",
            "clusters.eu.clutser: no such",
            "a misspelled key",
        ),
        (
            "[clusters.eu]\nbootstrap_servers = 'eu:1'\ncluster = 'default'",
            "two clusters have the name 'default'",
            "the name of the first cluster",
        ),
        (
            "[clusters.a]\nbootstrap_servers = 'a:1'\n[clusters.b]\nbootstrap_servers = 'b:1'\ncluster = 'a'",
            "two clusters have the name 'a'",
            "the same name in two further clusters",
        ),
        ("[clusters.EU]\nbootstrap_servers = 'eu:1'", "lower-case letters", "no environment variable could name it"),
        ("[clusters.'../x']\nbootstrap_servers = 'eu:1'", "lower-case letters", "a path outside the folder"),
        ("[clusters.a__b]\nbootstrap_servers = 'eu:1'", "single underscores", "two underscores separate sections"),
        (
            "[paths]\ncheckpoint = '/x/c'\n[clusters.eu]\nbootstrap_servers = 'eu:1'\ncheckpoint = '/x/c/eu'",
            "/x/c and /x/c/eu must be different folders, and neither may contain the other",
            "`rebuild` of the first cluster would move it away",
        ),
        (
            f"{PATHS}[clusters.eu]\nbootstrap_servers = 'eu:1'\ncheckpoint = '/x/tables/'",
            "/x/tables and /x/tables must be different folders, and neither may contain the other",
            "the checkpoint is inside the tables",
        ),
    ],
)
def test_invalid_clusters_are_refused(file: Path, content: str, message: str, why: str) -> None:
    assert message in error(file, content), why


def test_with_several_clusters_a_command_requires_the_name_of_one(file: Path) -> None:
    """Otherwise `rebuild` could move the wrong checkpoint away."""
    alone = loaded(file, ONE)
    assert alone.of_cluster(None) == alone
    several = loaded(file, ONE + MORE)
    assert several.of_cluster("eu").paths.checkpoint == "/x/checkpoint-clusters/eu"
    for name, message in ((None, "several clusters are configured"), ("asia", "no cluster 'asia' is configured")):
        with pytest.raises(ConfigError, match=f"{message}: set --cluster to one of prod, eu, us_east"):
            several.of_cluster(name)


def test_config_check_prints_each_cluster_so_that_it_reads_back(file: Path) -> None:
    file.write_text(ONE + MORE)
    result = CliRunner().invoke(config, ["check", "--config", str(file)])
    printed = file.with_name("printed.toml")
    printed.write_text(result.output)
    assert load_settings(printed).model_dump() == load_settings(file).model_dump()
    assert "(REBALANCE_MONITOR_CLUSTERS__US_EAST__BOOTSTRAP_SERVERS)" in result.output
