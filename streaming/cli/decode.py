"""``rebalance-monitor decode``: records of ``__consumer_offsets`` as JSON, the way Kafka itself prints them."""

from __future__ import annotations

import sys
from typing import BinaryIO, Final

import click
import msgspec

from streaming.protocol.record_json import render_record

BAD_LINE: Final = "bad_line"
"""Reason for an input line that is no JSON object with base64 ``key`` and ``value``."""


class _RawRecord(msgspec.Struct):
    """One input line; other fields are ignored. Both must be there: a missing value is no tombstone."""

    key: bytes | None
    value: bytes | None


def decode_line(line: bytes) -> bytes:
    """Return the JSON answer to one line of input, without its line feed.

    >>> decode_line(b'{"key": "AAMAAWc=", "value": null}').decode()
    '{"record":"ConsumerGroupMetadata","key":{"groupId":"g"},"value":null}'
    """
    try:
        raw = msgspec.json.decode(line, type=_RawRecord)
    except (msgspec.DecodeError, UnicodeDecodeError) as refusal:
        return msgspec.json.encode({"error": BAD_LINE, "field": str(refusal)})
    return msgspec.json.encode(render_record(raw.key, raw.value))


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
def decode(file: BinaryIO) -> None:
    """Decode records of __consumer_offsets from FILE or from standard input.

    Each input line is a JSON object with base64 "key" and "value" (null for a tombstone).

    Each output line is {"record", "key", "value"} in the format of Kafka's own tools. For classic members, "decoded"
    holds the decoded bytes of the consumer protocol. For a record that Kafka cannot read either, the line is
    {"error", "field"}.
    """
    output = sys.stdout.buffer
    for line in file:  # a binary file is split at line feeds alone: names can hold U+2028
        output.write(decode_line(line) + b"\n")
