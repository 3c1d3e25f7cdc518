"""Decodes the bytes of ``__consumer_offsets`` into records, exactly as Kafka's classes do.

``decode`` decodes records of all types. ``classic`` and ``modern`` provide typed views of the records of groups. The
functions convert bytes to values and have no side effects. The functions raise UndecodableRecord for bytes that Kafka's
reader refuses. See DESIGN.md in this folder. The package imports no other package of `streaming`.
"""

from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType, decode

__all__ = ["DecodedRecord", "RecordType", "UndecodableRecord", "decode"]
