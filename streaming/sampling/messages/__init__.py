"""Message classes for requests that kafka-python does not support.

The classes are created from the JSON definitions in this folder. The definitions contain only the wire format: API key,
versions, names, types. The sources of the definitions are KIP-848, KIP-932, KIP-1071 and Kafka 4.2. The package may
import kafka-python and `sampling.connection`.
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
"""A request with group ids, to describe groups of the consumer protocol (KIP-848, brokers since Kafka 3.7)."""
ConsumerGroupDescribeResponse = _message("ConsumerGroupDescribeResponse")

ShareGroupDescribeRequest = _message("ShareGroupDescribeRequest")
"""A request with group ids, to describe share groups (KIP-932, brokers since Kafka 4.1)."""
ShareGroupDescribeResponse = _message("ShareGroupDescribeResponse")

StreamsGroupDescribeRequest = _message("StreamsGroupDescribeRequest")
"""A request with group ids, to describe groups of the streams protocol (KIP-1071, brokers since Kafka 4.1)."""
StreamsGroupDescribeResponse = _message("StreamsGroupDescribeResponse")
