"""Tests that the files which documents name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    path
    for folder in ("assignors", "dashboards", "deploy", "docs", "streaming", "tests")
    for path in sorted((ROOT / folder).rglob("*.md"))
]
FILE = re.compile(r"`([\w./-]+/[\w.-]+\.(?:py|md))`|\]\(([\w./-]+\.md)\)")
"""Matches a path with a folder in code style, or the target of a link."""


@pytest.mark.parametrize(
    "document", [*sorted(ROOT.glob("*.md")), *DOCUMENTS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_file_that_a_document_names_exists(document: Path):
    """A file map that is not checked becomes outdated."""
    named = {in_code or link for in_code, link in FILE.findall(document.read_text())}
    folders = (document.parent, ROOT, ROOT / "streaming", ROOT / "tests")
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []
