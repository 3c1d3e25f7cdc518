"""The type of settings that count records, tasks, groups, members or series.

No count is larger than 1,000,000,000, because Spark, PyArrow and the sampler compute with integers of at most 64 bits.
A number that does not fit into such an integer would cause an error only minutes after the start.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(le=1_000_000_000)]
