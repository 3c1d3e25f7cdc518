"""Makes shared modules (``tests.assignors.golden``) importable, however pytest was started."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[2]))  # importmode=importlib does not add the root of the repository


# A busy machine must not fail a property test.
settings.register_profile("no-deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no-deadline")
