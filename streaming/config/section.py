"""What every section of the settings is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from streaming.config.redaction import shown


class Section(BaseModel):
    """A section of the settings: frozen, nothing it does not know, and printed without secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What is printed of it, also in a traceback with local variables."""
        for name, value in super().__repr_args__():
            yield name, value if isinstance(value, Section) else shown(value)
