"""Test the docstrings of all packages, and run their examples."""

from __future__ import annotations

import ast
import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = [
    path.relative_to(ROOT)
    for package in ("assignors", "dashboards", "streaming")
    for path in sorted((ROOT / package).rglob("__init__.py"))
]
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


@pytest.mark.parametrize("path", PACKAGES, ids=str)
def test_every_package_says_what_it_may_import(path: Path) -> None:
    """A newcomer finds the layer of a package where the package starts."""
    docstring = ast.get_docstring(ast.parse((ROOT / path).read_text())) or ""
    assert "import" in docstring
