"""Decodes the bytes of ``__consumer_offsets`` into records, exactly as Kafka's own classes do.

``decode`` reads any record. ``classic``, ``modern`` and ``offset_commit`` provide typed views of the records that the
monitor evaluates. The functions convert bytes to values and have no side effects. If Kafka's own reader would refuse
the bytes, they raise UndecodableRecord. See DESIGN.md in this folder.
"""

from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType, decode

__all__ = ["DecodedRecord", "RecordType", "UndecodableRecord", "decode"]
