"""Message classes of requests that kafka-python does not have.

They are created from the JSON definitions in this folder.

The definitions have only the wire format: API key, versions, names, types. The definitions come from KIP-848, KIP-932,
KIP-1071, and the messages of Kafka 4.2 with the same names.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

from streaming.sampling.connection import Message


def _message(name: str) -> Message:
    """Create a message class for kafka-python from `<name>.json`.

    The caller must keep a reference to the class, because the client has only weak references to response classes.
    """
    return type(ApiMessage)(name, (ApiMessage,), {"__slots__": ()}, load_json=__name__)


ConsumerGroupDescribeRequest = _message("ConsumerGroupDescribeRequest")
"""Request to describe groups of the consumer protocol by id (KIP-848, brokers from 3.7)."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")

ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""Request to describe share groups by id (KIP-932, brokers from 4.1)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")

StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
"""Request to describe groups of the streams protocol by id (KIP-1071, brokers from 4.1)."""
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
