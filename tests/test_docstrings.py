"""Run the examples in the docstrings of all packages."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("assignors", "dashboards", "streaming")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_a_docstring_is_true(name: str) -> None:
    """Readers try the example first. Before, one example of the tables failed, because no test ran it."""
    assert doctest.testmod(importlib.import_module(name.removesuffix(".__init__"))).failed == 0
