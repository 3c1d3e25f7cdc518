"""Decodes the bytes of ``__consumer_offsets`` into records, exactly as Kafka's own classes do.

``decode`` reads any record. ``classic``, ``modern`` and ``offset_commit`` give typed views of the records that the
monitor evaluates. The package is pure: bytes in, values out. If Kafka's reader refuses bytes, it raises
UndecodableRecord. See DESIGN.md in this folder.
"""

from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType, decode

__all__ = ["DecodedRecord", "RecordType", "UndecodableRecord", "decode"]
