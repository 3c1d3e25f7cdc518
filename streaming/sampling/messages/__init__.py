"""Requests that kafka-python does not know: its message classes, made from definitions that lie beside this file.

The definitions hold what is on the wire and nothing else: API key, versions, names, types. Source: KIP-848, KIP-932,
KIP-1071 and the messages of Kafka 4.2 by the same names.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

from streaming.sampling.connection import Message


def _message(name: str) -> Message:
    """Make a class of kafka-python from `<name>.json`. It must be kept: the client remembers responses weakly."""
    return type(ApiMessage)(name, (ApiMessage,), {"__slots__": ()}, load_json=__name__)


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
"""Groups of the consumer protocol, by id (KIP-848; brokers from 3.7 on)."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")

ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""Share groups, by id (KIP-932; brokers from 4.1 on)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")

StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
"""Groups of the streams protocol, by id (KIP-1071; brokers from 4.1 on)."""
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
