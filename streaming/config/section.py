"""What every section of the settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of the settings: frozen, and nothing it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
