"""How many examples a law is tried with: `make test-quick EXAMPLES=1000` tries more.

Each run draws others. A hundred, Hypothesis' own number, are a third of the processor time of all quick tests.
"""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("EXAMPLES", "40"))
