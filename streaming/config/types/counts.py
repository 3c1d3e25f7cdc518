"""The type of settings that count records, tasks, groups, members or series.

Spark, PyArrow and the sampler compute with integers of 64 bits. A larger number would fail only minutes after the
start.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(le=1_000_000_000)]
