"""Bytes of ``__consumer_offsets`` to records, exactly as Kafka's own classes read them.

``decode`` reads any record; ``classic`` and ``offset_commit`` give typed views of the two kinds the monitor evaluates
by. Pure: bytes in, values out, and UndecodableRecord for whatever Kafka's reader refuses. See DESIGN.md beside this
file.
"""

from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType, decode

__all__ = ["DecodedRecord", "RecordType", "UndecodableRecord", "decode"]
