"""Read the expected values of end-to-end comparisons: from Kafka's admin API and from the records of the topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec

from streaming.protocol import RecordType, UndecodableRecord, decode

Assignment = Mapping[str, frozenset[tuple[str, int]]]


@dataclass(frozen=True)
class RawRecord:
    """One record of `__consumer_offsets`, as any consumer reads it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class KafkaReference:
    """Reads groups, offsets and records from the broker. Of the monitor's code it uses only the decoder of records."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def group(self, group_id: str) -> Mapping[str, object]:
        """Describe one classic group."""
        described: Mapping[str, object] = self._admin.describe_groups([group_id])[group_id]
        return described

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return committed offsets by (topic, partition)."""
        answers = self._admin.list_group_offsets([group_id])[group_id]
        return {(at.topic, at.partition): answer.offset for at, answer in answers.items() if answer.offset >= 0}

    def ends(self, topic_partitions: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return end offsets by (topic, partition)."""
        asked = {TopicPartition(*at): OffsetSpec.LATEST for at in topic_partitions}
        answers = self._admin.list_partition_offsets(asked)
        return {(at.topic, at.partition): answer.offset for at, answer in answers.items()}

    def lag(self, group_id: str) -> dict[tuple[str, int], int]:
        """Return end offsets minus committed offsets, by (topic, partition)."""
        committed = self.committed(group_id)
        ends = self.ends(sorted(committed))
        return {at: ends[at] - offset for at, offset in committed.items()}

    def records(self) -> list[RawRecord]:
        """Return every committed record of `__consumer_offsets`, in order per partition."""
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap_servers,
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            exclude_internal_topics=False,
        )
        try:
            partitions = consumer.partitions_for_topic("__consumer_offsets") or set()
            assigned = [TopicPartition("__consumer_offsets", partition) for partition in sorted(partitions)]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            ends = consumer.end_offsets(assigned)
            records: list[RawRecord] = []
            while any(consumer.position(partition) < ends[partition] for partition in assigned):
                for batch in consumer.poll(500).values():
                    records += [
                        RawRecord(record.partition, record.offset, record.key, record.value, record.timestamp)
                        for record in batch
                    ]
            return records
        finally:
            consumer.close()

    def record_types(self) -> tuple[set[int], dict[int, str]]:
        """Return the types of the decodable records, and an error for each type with an undecodable record."""
        decoded: set[int] = set()
        errors: dict[int, str] = {}
        for record in self.records():
            key_type = int.from_bytes((record.key or b"\xff\xff")[:2], "big")
            error = _decode_error(record)
            if error is None:
                decoded.add(key_type)
            else:
                errors[key_type] = error
        return decoded, errors

    def positions(self, kinds: Collection[RecordType]) -> set[tuple[int, int]]:
        """Return the positions of all records of these types, also of undecodable ones."""
        types = {int(kind) for kind in kinds}
        return {
            (record.partition, record.offset)
            for record in self.records()
            if int.from_bytes((record.key or b"\xff\xff")[:2], "big") in types
        }

    def generations(self, group_id: str) -> list[tuple[int, bool]]:
        """Return (generation, has members) of each GroupMetadata record of a group, in log order."""
        generations = []
        for record in self.records():
            if (record.key or b"")[:2] == b"\x00\x02" and record.value is not None:
                decoded = decode(record.key, record.value)
                if decoded.key["group"] == group_id and decoded.value is not None:
                    generations.append((decoded.value["generation"], bool(decoded.value["members"])))
        return generations


def _decode_error(record: RawRecord) -> str | None:
    try:
        decode(record.key, record.value)
    except UndecodableRecord as error:
        return str(error)
    return None
