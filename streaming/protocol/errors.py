"""Defines the decoder's only exception. The exception contains the reason and the field of a decode failure."""

from __future__ import annotations

from typing import Final

TRUNCATED: Final = "truncated"  # the bytes end inside a field
NULL_FIELD: Final = "null_field"  # a null in a field that is not nullable
BAD_VARINT: Final = "bad_varint"  # a varint of more than five bytes
STRING_TOO_LONG: Final = "string_too_long"  # a compact string of more than 32,767 bytes
ARRAY_TOO_LONG: Final = "array_too_long"  # an array whose count is greater than the number of remaining bytes
NEGATIVE_SIZE: Final = "negative_size"  # an unknown tagged field with a negative size
MISSING_KEY: Final = "missing_key"  # a record without a key. The coordinator does not write such records
UNKNOWN_RECORD_TYPE: Final = "unknown_record_type"  # a key with an unknown record type
UNKNOWN_VALUE_VERSION: Final = "unknown_value_version"  # a value version that the record type does not have
UNKNOWN_EMBEDDED_VERSION: Final = "unknown_embedded_version"  # a negative version in ConsumerProtocol bytes


class UndecodableRecord(ValueError):  # noqa: N818 - the name is about the record, as in the quarantine table
    """Error: Kafka's reader refuses the bytes.

    ``reason`` is one of the constants of this module. The constants must not change, because they are label values of a
    counter. ``field`` is the path of the unreadable field, for example ``value.members[3].clientId``. If the error is
    not in a field, ``field`` is None.
    """

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        """Return the reason and the field, for example ``truncated at value.offset``."""
        return self.reason if self.field is None else f"{self.reason} at {self.field}"

    def under(self, parent: str) -> UndecodableRecord:
        """Return the same error, with ``parent`` added before the path of its field."""
        return UndecodableRecord(self.reason, parent if self.field is None else f"{parent}.{self.field}")
