"""Tests of the same requests with older and newer brokers. On every version, a denial proves a deletion."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from streaming.cli.groups import groups as groups_command
from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.group.listing import UNSUPPORTED_VERSION, DescribedGroup, GroupNotFound
from streaming.jars import BROKER_SETS
from streaming.jars.coordinates import KAFKA_VERSION
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups

OTHER_VERSIONS = sorted(set(BROKER_SETS) - {KAFKA_VERSION})


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("kafka_version", OTHER_VERSIONS)
def test_a_group_is_listed_described_and_proven_deleted_by_every_version_of_kafka(tmp_path: Path, kafka_version: str):
    """ListGroups returns types since 3.8. For a missing group, DescribeGroups returns Dead before 4.0.

    Since 4.0 it returns GROUP_ID_NOT_FOUND.
    """
    with EmbeddedBroker(tmp_path / "broker", kafka_version=kafka_version) as broker:
        address = broker.bootstrap_servers
        with closing(Connection(KafkaSettings(bootstrap_servers=address), 15)) as connection:
            connection.admin.create_topics([NewTopic("t", 1, 1)])
            with closing(KafkaConsumer(bootstrap_servers=address, group_id="g")) as committer:
                committer.commit({TopicPartition("t", 0): OffsetAndMetadata(7, "", -1)})
            groups = Groups(connection, lambda: 0)
            listing = groups.list_groups()
            assert listing.is_complete
            has_types = tuple(map(int, kafka_version.split(".")[:2])) >= (3, 8)
            assert listing.groups["g"].group_type == ("classic" if has_types else None)
            assert listing.groups["g"].state == "Empty"
            empty = DescribedGroup("classic", "Empty", "", None, ())
            known = {"g": listing.groups["g"].group_type, "never": None}
            assert groups.describe_groups(known) == {"g": empty, "never": GroupNotFound()}
            supports_kip_848 = kafka_version.startswith("4")
            denied = GroupNotFound() if supports_kip_848 else UNSUPPORTED_VERSION
            assert groups.describe_groups({"was-consumer": "consumer"}) == {"was-consumer": denied}
            assert groups.group_offsets(["g"]) == {"g": {("t", 0): 7}}
            shown = CliRunner().invoke(groups_command, ["--bootstrap-server", address, "--json", "--type", "classic"])
            assert [json.loads(line)["group_id"] for line in shown.stdout.splitlines()] == ["g"]
            connection.admin.delete_groups(["g"])
            assert groups.describe_groups({"g": None}) == {"g": GroupNotFound()}
