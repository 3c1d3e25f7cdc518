"""Test the examples of settings in the page about Strimzi, Amazon MSK, Confluent Cloud and Redpanda."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streaming.config.load import load_settings

PAGE = (Path(__file__).parents[2] / "deploy" / "PROVIDERS.md").read_text()
SECTIONS = {section.partition("\n")[0]: section for section in PAGE.split("\n## ")[1:]}
_EXAMPLE = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("system", "mechanism", "source_kind"),
    [
        ("Strimzi", "SCRAM-SHA-512", "offsets-topic"),
        ("Amazon MSK, provisioned", "SCRAM-SHA-512", "offsets-topic"),
        ("Confluent Cloud", "PLAIN", "admin-api"),
        ("Redpanda", "SCRAM-SHA-256", "offsets-topic"),
    ],
)
def test_the_monitor_accepts_each_example_of_settings(
    system: str, mechanism: str, source_kind: str, tmp_path: Path
) -> None:
    """The files of the example are in a folder of the test. No cluster of these systems was available."""
    (example,) = _EXAMPLE.findall(SECTIONS[system])
    for path in re.findall(r'_file = "(.*)"', example):
        file = tmp_path / Path(path).name
        file.write_text("-----BEGIN CERTIFICATE-----")
        file.chmod(0o600)
        example = example.replace(path, str(file))
    (tmp_path / "monitor.toml").write_text(example)
    settings = load_settings(tmp_path / "monitor.toml")
    assert settings.kafka.security.protocol == "SASL_SSL"
    assert (settings.kafka.security.mechanism, settings.source.kind) == (mechanism, source_kind)


def test_each_number_in_brackets_is_a_source_of_the_page_and_each_source_is_used() -> None:
    """A fact without a source would be a guess."""
    facts, sources = PAGE.split("## Sources")
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", facts)}
    assert numbers == {int(number) for number in re.findall(r"^(\d+)\. ", sources, re.MULTILINE)}
