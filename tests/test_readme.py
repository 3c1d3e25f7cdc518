"""What the README promises is what the code has."""

from __future__ import annotations

import re

from streaming.cli import main
from streaming.sinks.metrics import MonitorCollector
from streaming.sinks.registry import Registry
from tests.readme import README, with_current_tables


def test_the_table_reference_is_the_one_the_schemas_give():
    """Regenerate with `python -m tests.readme`."""
    readme = README.read_text()
    assert with_current_tables(readme) == readme


def test_every_command_is_in_the_readme():
    """A command nobody can find does not exist."""
    readme = README.read_text()
    assert [name for name in main.list_commands(None) if f"`{name}" not in readme] == []  # type: ignore[arg-type]


def test_every_family_of_the_collector_is_in_the_readme_and_the_other_way_round():
    """A metric used but not documented, or documented but not exported, sends somebody on call the wrong way."""
    from streaming.group.listing import GroupListing  # noqa: PLC0415 - only here
    from streaming.judgement.lag import LAG_SCHEMA, ClusterSample  # noqa: PLC0415 - only here
    from tests.streaming.lags import judged_lag  # noqa: PLC0415 - only here

    registry = Registry()
    sample, no_commits = ClusterSample(sampled_at_ms=0), LAG_SCHEMA.empty_table().select(LAG_SCHEMA.names[:5])
    registry.put_sample(sample, judged_lag(no_commits, sample), GroupListing(0, {}))
    registry.put_health(ready=True, was_ready=True, batch_seconds=1.0)
    collector = MonitorCollector("c", registry, lambda: 0, stale_after_ms=1)
    exported = {family.name + ("_total" if family.type == "counter" else "") for family in collector.collect()}
    reference = README.read_text().split("## Metrics")[1].split("## Tables")[0]
    documented = set(re.findall(r"`((?:rebalance_monitor|kafka)_[a-z_]+)`", reference))
    assert exported == documented
