"""``rebalance-monitor decode`` prints records of ``__consumer_offsets`` as JSON in the format of Kafka's tools."""

from __future__ import annotations

import sys
from typing import BinaryIO, Final

import click
import msgspec

from streaming.cli.text.streams import input_lines
from streaming.protocol.record_json import render_record

BAD_LINE: Final = "bad_line"
"""Error code of an input line that is not a JSON object with base64 ``key`` and ``value``."""


class _RawRecord(msgspec.Struct):
    """One input line. Both fields are required. The `value` of a tombstone is null."""

    key: bytes | None
    value: bytes | None


def decode_line(line: bytes) -> bytes:
    """Return the output line for one input line: JSON without a line feed.

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
    """Decode records of __consumer_offsets in FILE or on standard input.

    Each input line is a JSON object. Its fields "key" and "value" contain base64 text. The "value" of a tombstone is
    null.

    Each output line is {"record", "key", "value"} in the format of Kafka's own tools. For members of a classic group,
    "decoded" contains the decoded data of the consumer protocol. If the record cannot be decoded, the output line is
    {"error", "field"}.
    """
    output = sys.stdout.buffer
    for line in input_lines(file):
        output.write(decode_line(line) + b"\n")
