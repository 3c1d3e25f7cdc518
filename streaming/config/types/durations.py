"""Types of settings that are durations.

No duration is longer than 100 years. The monitor adds durations to dates and times, and converts them to milliseconds.
With longer durations, the results would be too large for Python, Spark or delta-rs. The error would occur only minutes
after the start.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

LONGEST_DAYS: Final = 36_500

Seconds = Annotated[float, Field(gt=0, le=LONGEST_DAYS * 86_400, allow_inf_nan=False)]
Hours = Annotated[int, Field(ge=1, le=LONGEST_DAYS * 24)]
Days = Annotated[int, Field(ge=1, le=LONGEST_DAYS)]
