"""Compare the results of our decoder and of Kafka's decoder for the same bytes."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from streaming.protocol import UndecodableRecord, decode
from streaming.protocol.consumer_protocol import decode_assignment, decode_subscription, sticky_user_data
from tests.streaming.protocol.records import raw_record

if TYPE_CHECKING:
    from collections.abc import Mapping


def as_json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a decoded value in its JSON form: bytes as base64."""
    return json.loads(json.dumps(value, default=lambda raw: b64encode(raw).decode()))


def decode_line(line: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return our decoder's result for an input line of the oracle, in the oracle's format."""
    try:
        if "key" in line:
            record = decode(*raw_record(line))
            return as_json({"record": record.name, "key": record.key, "value": record.value})
        if "stickyUserData" in line:
            owned, generation = sticky_user_data(b64decode(line["stickyUserData"]))
            return as_json({"owned": owned, "generation": generation})
        read = decode_subscription if "subscription" in line else decode_assignment
        version, fields = read(b64decode(line["subscription" if "subscription" in line else "assignment"]))
        return as_json({"fields": fields, "version": version})
    except UndecodableRecord:
        return {"refused": True}


def disagreement(line: Mapping[str, Any]) -> str | None:
    """Return the case and both results if they differ, also if only the order of fields differs."""
    ours = decode_line(line["input"])
    if json.dumps(ours) == json.dumps(line["kafka"]):
        return None
    return f"input {line['input']}\nKafka {line['kafka']}\nours  {ours}"
