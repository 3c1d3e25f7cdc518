"""Cluster ids that Kafka's own tools take for what they are."""

from __future__ import annotations

import uuid

from streaming.embedded.broker import cluster_id


def test_no_id_is_led_by_a_dash():
    """Seen in CI: one broker in 64 would not start, `format -t -Ab...` being an option nobody knows."""
    ids = [cluster_id(uuid.UUID(bytes=bytes([first]) + bytes(15))) for first in range(256)]
    assert [made for made in ids if made.startswith("-")] == []
    assert {len(made) for made in ids} == {22}
