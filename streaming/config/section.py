"""Base class of all sections of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from streaming.config.secret_settings import hide_secrets


class Section(BaseModel):
    """A section of the settings. A section is immutable, rejects unknown settings, and hides secrets in its `repr`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Return all fields. Secrets are hidden, because a traceback can print the fields."""
        for name, value in super().__repr_args__():
            yield name, value if isinstance(value, Section) else hide_secrets(value)
