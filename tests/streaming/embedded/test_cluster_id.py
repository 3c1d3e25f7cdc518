"""Cluster ids that Kafka's own tools take for what they are."""

from __future__ import annotations

import uuid

from streaming.embedded.broker import cluster_id, with_new_ids


def test_no_id_is_led_by_a_dash():
    """Seen in CI: one broker in 64 would not start, `format -t -Ab...` being an option nobody knows."""
    ids = [cluster_id(uuid.UUID(bytes=bytes([first]) + bytes(15))) for first in range(256)]
    assert [made for made in ids if made.startswith("-")] == []
    assert {len(made) for made in ids} == {22}


def test_what_is_written_once_more_has_ids_of_its_own_and_is_else_the_same():
    """Kafka's tool is a JVM of its own, so a second broker's files are copies."""
    written = b"#\nnode.id=1\ndirectory.id=Ummx9IT00_HM9qqg9f-0Bw\nversion=1\ncluster.id=SJm8qhOERq6bcSV3WdXNdw\n"
    first, second = with_new_ids(written), with_new_ids(written)
    assert len({written, first, second}) == 3
    names = [[line.partition(b"=")[0] for line in content.splitlines()] for content in (written, first)]
    assert names[0] == names[1]
    records = b"\x00\x02cluster.id\x00directory.id\xff\n"
    assert with_new_ids(records) == records
