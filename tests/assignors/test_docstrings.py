"""The worked examples in the docstrings are run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import assignors

MODULES = [module.name for module in pkgutil.walk_packages(assignors.__path__, "assignors.")]


@pytest.mark.parametrize("name", ["assignors", *MODULES])
def test_the_examples_in_the_docstrings_are_true(name: str):
    """An example that no longer holds misleads worse than none."""
    assert doctest.testmod(importlib.import_module(name)).failed == 0
