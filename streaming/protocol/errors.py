"""The one exception of the decoder: it names what was wrong with a record and where."""

from __future__ import annotations

from typing import Final

TRUNCATED: Final = "truncated"
"""The bytes end inside a field."""
NULL_FIELD: Final = "null_field"
"""A null where the layout allows none."""
BAD_VARINT: Final = "bad_varint"
"""A varint that goes on after its fifth byte."""
STRING_TOO_LONG: Final = "string_too_long"
"""A compact string of more than 32,767 bytes."""
ARRAY_TOO_LONG: Final = "array_too_long"
"""An array that announces more elements than bytes are left."""
NEGATIVE_SIZE: Final = "negative_size"
"""An unknown tagged field of a negative size."""
MISSING_KEY: Final = "missing_key"
"""A record without a key: the coordinator writes none."""
UNKNOWN_RECORD_TYPE: Final = "unknown_record_type"
"""A key whose record type has no layout."""
UNKNOWN_VALUE_VERSION: Final = "unknown_value_version"
"""A value version outside those of its record type."""
UNKNOWN_EMBEDDED_VERSION: Final = "unknown_embedded_version"
"""A negative version of the embedded ConsumerProtocol."""


class UndecodableRecord(ValueError):  # noqa: N818 - it names the record's fate, as the quarantine table does
    """Bytes that Kafka's own reader refuses too.

    Attributes:
        reason: one of the short constants of this module; stable, so that it can label a counter.
        field: path of the field that could not be read, led by ``key`` or ``value``
            (``value.members[3].clientId``), or None where no field was reached.

    >>> raise UndecodableRecord("truncated", "value.offset")
    Traceback (most recent call last):
    ...
    streaming.protocol.errors.UndecodableRecord: truncated at value.offset

    """

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason, field)
        self.reason = reason
        self.field = field

    def __str__(self) -> str:
        """Reason and place in one line."""
        return self.reason if self.field is None else f"{self.reason} at {self.field}"

    def under(self, parent: str) -> UndecodableRecord:
        """Return the same refusal with its field placed below ``parent``."""
        return UndecodableRecord(self.reason, parent if self.field is None else f"{parent}.{self.field}")
