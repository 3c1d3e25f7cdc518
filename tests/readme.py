"""Keeps the README's table reference equal to the schemas: `python -m tests.readme` writes it anew."""

from __future__ import annotations

from pathlib import Path

from streaming.sinks.tables import describe_tables

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- tables: written by `python -m tests.readme`, checked by the tests -->\n"
END = "<!-- /tables -->"


def with_current_tables(readme: str) -> str:
    """Put today's reference between the two marks."""
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n".join(describe_tables()) + "\n" + END + after


if __name__ == "__main__":
    README.write_text(with_current_tables(README.read_text()))
