"""Lets the tests of this folder share modules (``tests.assignors.golden``) however pytest was started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # importmode=importlib leaves the root of the repository out
