"""Several clusters in one configuration: each has settings as if it were alone, and none gets another's folder."""

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


def test_one_cluster_alone_is_as_it_always_was(file: Path) -> None:
    settings = loaded(file, ONE)
    assert settings.of_clusters() == (settings,)


def test_a_cluster_more_leaves_the_settings_of_the_first_as_they_were(file: Path) -> None:
    """Its checkpoint above all: another folder would read the log anew and count from other rows."""
    alone, (first, *_) = loaded(file, ONE), loaded(file, ONE + MORE).of_clusters()
    assert first.model_dump() == alone.model_dump()


def test_each_cluster_has_a_name_an_address_and_a_checkpoint_of_its_own_and_all_share_the_tables(file: Path) -> None:
    of_clusters = loaded(file, ONE + MORE).of_clusters()
    assert [(one.kafka.cluster, one.kafka.bootstrap_servers, one.paths.checkpoint) for one in of_clusters] == [
        ("prod", "a:1", "/x/checkpoint"),
        ("eu", "eu:1", "/x/checkpoint-clusters/eu"),
        ("us_east", "us:1,us:2", "/x/checkpoint-clusters/us_east"),
    ]
    assert {one.paths.tables for one in of_clusters} == {"/x/tables"}


def test_what_a_cluster_does_not_say_is_taken_from_the_first(file: Path) -> None:
    secured = "[kafka]\nconnect_timeout_seconds = 7\n[kafka.security]\nprotocol = 'SSL'\n[source]\nkind = 'admin-api'\n"
    said = "connect_timeout_seconds = 3\nsource_kind = 'offsets-topic'\n[clusters.eu.security]\n"
    (_, eu) = loaded(file, f"{secured}[clusters.eu]\nbootstrap_servers = 'eu:1'\n").of_clusters()
    assert (eu.kafka.connect_timeout_seconds, eu.kafka.security.protocol, eu.source.kind) == (7, "SSL", "admin-api")
    (_, eu) = loaded(file, f"{secured}[clusters.eu]\nbootstrap_servers = 'eu:1'\n{said}").of_clusters()
    assert (eu.kafka.connect_timeout_seconds, eu.kafka.security.protocol, eu.source.kind) == (
        3,
        "PLAINTEXT",
        "offsets-topic",
    )


def test_a_cluster_with_security_of_its_own_gets_no_credential_of_another(file: Path) -> None:
    """Key by key, a forgotten password would be sent to whoever answers at another company's address."""
    scram = "protocol = 'SASL_PLAINTEXT'\nmechanism = 'PLAIN'\nusername = 'me'\n"
    first = f"[kafka.security]\n{scram}password = 'hunter2'\n[clusters.eu]\nbootstrap_servers = 'eu:1'\n"
    said = error(file, f"{first}[clusters.eu.security]\n{scram}")
    assert said == "clusters.eu.security: mechanism = 'PLAIN' needs password or password_file"


def test_a_cluster_is_set_by_the_environment_as_everything_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits alone are a password, too: no variable is taken for a number where text is wanted."""
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
    assert eu.paths.checkpoint.endswith("checkpoint-clusters/eu_2"), "a label of any letters makes no path"


@pytest.mark.parametrize(
    ("content", "said", "why"),
    [
        ("[clusters.eu]\n", "clusters.eu.bootstrap_servers: Field required", "its address is nobody else's"),
        ("[clusters.eu]\nbootstrap_servers = 'eu'", "'eu' is not host:port", "checked as the first's"),
        ("[clusters.eu]\nbootstrap_servers = 'eu:1'\nclutser = 'x'", "clusters.eu.clutser: no such", "a misspelt key"),
        ("[clusters.eu]\nbootstrap_servers = 'eu:1'\ncluster = 'default'", "two have the name 'default'", "one name"),
        (
            "[clusters.a]\nbootstrap_servers = 'a:1'\n[clusters.b]\nbootstrap_servers = 'b:1'\ncluster = 'a'",
            "two have the name 'a'",
            "one name without the first",
        ),
        ("[clusters.EU]\nbootstrap_servers = 'eu:1'", "lower-case letters", "no variable could name it"),
        ("[clusters.'../x']\nbootstrap_servers = 'eu:1'", "lower-case letters", "a way out of the folder"),
        ("[clusters.a__b]\nbootstrap_servers = 'eu:1'", "single underscores", "two underscores part sections"),
        (
            "[paths]\ncheckpoint = '/x/c'\n[clusters.eu]\nbootstrap_servers = 'eu:1'\ncheckpoint = '/x/c/eu'",
            "/x/c and /x/c/eu must be separate folders, and neither may contain the other",
            "`rebuild` of the first would move it away",
        ),
        (
            f"{PATHS}[clusters.eu]\nbootstrap_servers = 'eu:1'\ncheckpoint = '/x/tables/'",
            "/x/tables and /x/tables must be separate folders, and neither may contain the other",
            "its checkpoint among the tables",
        ),
    ],
)
def test_clusters_that_cannot_be_told_apart_are_refused(file: Path, content: str, said: str, why: str) -> None:
    assert said in error(file, content), why


def test_a_command_on_one_cluster_has_it_named_where_there_are_several(file: Path) -> None:
    """`rebuild` of whichever comes first would move a checkpoint away that nobody meant."""
    alone = loaded(file, ONE)
    assert alone.of_cluster(None) == alone
    several = loaded(file, ONE + MORE)
    assert several.of_cluster("eu").paths.checkpoint == "/x/checkpoint-clusters/eu"
    for name, said in ((None, "several clusters are configured"), ("asia", "no cluster 'asia' is configured")):
        with pytest.raises(ConfigError, match=f"{said}: set --cluster to one of prod, eu, us_east"):
            several.of_cluster(name)


def test_config_check_prints_each_cluster_so_that_it_reads_back(file: Path) -> None:
    file.write_text(ONE + MORE)
    result = CliRunner().invoke(config, ["check", "--config", str(file)])
    printed = file.with_name("printed.toml")
    printed.write_text(result.output)
    assert load_settings(printed).model_dump() == load_settings(file).model_dump()
    assert "(REBALANCE_MONITOR_CLUSTERS__US_EAST__BOOTSTRAP_SERVERS)" in result.output
