"""Test that Kafka's own tools accept the generated cluster ids."""

from __future__ import annotations

import uuid

from streaming.embedded.broker import cluster_id, with_new_ids


def test_no_id_begins_with_a_dash():
    """Kafka's `format -t -Ab...` takes such an id for an option. In CI one broker in 64 did not start."""
    ids = [cluster_id(uuid.UUID(bytes=bytes([first]) + bytes(15))) for first in range(256)]
    assert [made for made in ids if made.startswith("-")] == []
    assert {len(made) for made in ids} == {22}


def test_a_copied_file_has_new_ids_and_is_otherwise_the_same():
    """Running Kafka's tool takes a JVM, so the files of a second broker are copies with new ids."""
    written = b"#\nnode.id=1\ndirectory.id=Ummx9IT00_HM9qqg9f-0Bw\nversion=1\ncluster.id=SJm8qhOERq6bcSV3WdXNdw\n"
    first, second = with_new_ids(written), with_new_ids(written)
    assert len({written, first, second}) == 3
    names = [[line.partition(b"=")[0] for line in content.splitlines()] for content in (written, first)]
    assert names[0] == names[1]
    records = b"\x00\x02cluster.id\x00directory.id\xff\n"
    assert with_new_ids(records) == records
