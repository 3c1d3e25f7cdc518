"""Lets the tests of this folder share modules (``tests.assignors.golden``) however pytest was started."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[2]))  # importmode=importlib leaves the root of the repository out

from tests.examples import EXAMPLES

# A machine that is busy with other things must not fail a law.
settings.register_profile(
    "violations", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("violations")
