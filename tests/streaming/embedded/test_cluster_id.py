"""Test that Kafka's own tools accept the generated cluster ids."""

from __future__ import annotations

import uuid

from streaming.embedded.broker import cluster_id


def test_no_id_begins_with_a_dash():
    """Kafka's `format -t` reads an id like `-Ab...` as an option. In CI, one broker in 64 did not start."""
    ids = [cluster_id(uuid.UUID(bytes=bytes([first]) + bytes(15))) for first in range(256)]
    assert [made for made in ids if made.startswith("-")] == []
    assert {len(made) for made in ids} == {22}
