"""Test the entries [[groups]]: which limits a group gets, where they come from, and the addresses of [links].

The rules are in `streaming/config/groups.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.cli.config import config
from streaming.config.groups import GroupEntry, LimitsByGroup
from streaming.config.links import LinkSettings
from streaming.config.load import ConfigError, load_settings
from streaming.config.names import NameFilter
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.limits import DEFAULT_LIMITS
from streaming.group.snapshot import GroupSnapshot
from streaming.prometheus.metrics import Exporter
from streaming.run.watch import ClusterWatch
from tests.streaming.groups import advanced, written
from tests.streaming.http.answers import answer

DOCUMENT = Path(__file__).parents[3] / "docs" / "LIMITS.md"
VARIABLE = "REBALANCE_MONITOR_GROUPS"
NIGHTLY = "[[groups]]\nmatch = 'nightly-.*'\nmax_lag_seconds = 90000\nteam = 'reports'\n"


def limits(group_id: str, *entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a group that differ from the default."""
    found = LimitsByGroup([GroupEntry.model_validate(entry) for entry in entries]).of(group_id)
    names = type(found).__dataclass_fields__
    return {name: getattr(found, name) for name in names if getattr(found, name) != getattr(DEFAULT_LIMITS, name)}


def errors(file: Path | None) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_settings(file)
    return str(raised.value).splitlines()


def check_of_group(file: Path, group_id: str) -> list[str]:
    """Return the lines of `config check --group`."""
    result = CliRunner().invoke(config, ["check", "--config", str(file), "--group", group_id])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


EVERYONE = {"match": ".*"}
PAYMENTS = {"match": "payments"}


@pytest.mark.parametrize(
    ("entries", "expected", "why"),
    [
        ([], {}, "rule 2: without an entry, every limit has its default value"),
        ([{"match": "payments", "team": "money"}], {"team": "money"}, "rule 1: the entry applies"),
        ([{"match": "pay", "team": "money"}], {}, "rule 1: a part of the id is no match"),
        ([{"match": "ayments", "team": "money"}], {}, "rule 1: the end of the id is no match"),
        ([{"match": "orders|payments", "team": "money"}], {"team": "money"}, "rule 1: each alternative is a whole id"),
        ([{"match": "PAYMENTS", "team": "money"}], {}, "rule 1: upper and lower case differ"),
        ([{"match": "(?i)PAYMENTS", "team": "money"}], {"team": "money"}, "rule 1: unless the expression has a flag"),
        (
            [EVERYONE | {"team": "platform"}, PAYMENTS | {"team": "money"}],
            {"team": "money"},
            "rule 2: the last entry wins",
        ),
        (
            [PAYMENTS | {"team": "money"}, EVERYONE | {"team": "platform"}],
            {"team": "platform"},
            "rule 2: the last entry wins, even if an earlier one is more specific",
        ),
        (
            [EVERYONE | {"team": "platform", "severity": "warning"}, PAYMENTS | {"team": "money"}],
            {"team": "money", "severity": "warning"},
            "rule 2: the last entry wins for each setting alone, so the severity of the first entry still applies",
        ),
        (
            [EVERYONE | {"ignore_alerts": True}, PAYMENTS | {"ignore_alerts": False}],
            {},
            "rule 2: false is a value, so a later entry can switch alerts on again",
        ),
        (
            [EVERYONE | {"team": "platform"}, PAYMENTS | {"team": ""}],
            {},
            "rule 2: an empty team is a value, too",
        ),
        (
            [PAYMENTS | {"max_lag_seconds": 7200}],
            {"max_lag_seconds": 7200, "critical_lag_seconds": 7200},
            "rule 3: a group that may be two hours late is not critical after one hour",
        ),
        (
            [PAYMENTS | {"critical_lag_seconds": 60}],
            {"critical_lag_seconds": 600},
            "rule 3: a lag that is not even a warning cannot be critical",
        ),
        (
            [PAYMENTS | {"max_lag_seconds": 30, "critical_lag_seconds": 60}],
            {"max_lag_seconds": 30, "critical_lag_seconds": 60},
            "rule 3 changes nothing if the order is right",
        ),
        (
            [EVERYONE | {"max_lag_seconds": 7200}, PAYMENTS | {"critical_lag_seconds": 3600}],
            {"max_lag_seconds": 7200, "critical_lag_seconds": 7200},
            "rule 3 comes after rule 2, so it also applies to values of two entries",
        ),
        (
            [PAYMENTS | {"max_commit_gap_seconds": 10}],
            {"max_commit_gap_seconds": 10},
            "the commit gap has its own limit",
        ),
    ],
)
def test_a_group_gets_its_limits_by_the_rules(
    entries: list[dict[str, Any]], expected: dict[str, Any], why: str
) -> None:
    assert limits("payments", *entries) == expected, why


def test_many_groups_get_the_same_limits_as_one_group_alone() -> None:
    """A monitor of 10,000 groups asks for all of them at once, and again at each scrape."""
    entries = [GroupEntry(match="a.*", team="a"), GroupEntry(match=".*z", severity="info")]
    by_group = LimitsByGroup(entries)
    first, later = by_group.of_each(["az", "a"]), by_group.of_each(["z", "az", ""])
    alone = {group_id: LimitsByGroup(entries).of(group_id) for group_id in ("az", "a", "z", "")}
    assert {group_id: first[group_id] for group_id in ("az", "a")} == {one: alone[one] for one in ("az", "a")}
    assert {group_id: later[group_id] for group_id in ("z", "az", "")} == {one: alone[one] for one in ("z", "az", "")}
    assert len(set(alone.values())) == 4, "the entries must distinguish these groups"


def test_an_entry_is_matched_with_all_groups_at_once_and_only_with_new_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20 entries, 10,000 groups once took 16 s, because each match compiles the expression."""
    matched: list[list[str]] = []
    original = NameFilter.passing

    def passing(one: NameFilter, names: Sequence[str]) -> Any:  # noqa: ANN401 - numpy's type
        matched.append(list(names))
        return original(one, names)

    monkeypatch.setattr(NameFilter, "passing", passing)
    by_group = LimitsByGroup([GroupEntry(match="a.*"), GroupEntry(match="b.*")])
    by_group.of_each(["a", "b", "c"])
    assert matched == [["a", "b", "c"]] * 2
    by_group.of_each(["a", "b", "c", "d"])
    by_group.of("a")
    assert matched[2:] == [["d"]] * 2


def test_old_groups_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console consumer creates a new group at each start."""
    monkeypatch.setattr("streaming.config.groups._CACHED_GROUPS", 3)
    by_group = LimitsByGroup([GroupEntry(match=".*", team="x")])
    for number in range(10):
        assert set(by_group.of_each(["steady", f"console-{number}"])) >= {"steady", f"console-{number}"}
    assert len(by_group.of_each(["steady"])) <= 3


def test_the_entries_of_the_environment_replace_the_entries_of_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(NIGHTLY)
    assert load_settings(file).limits_by_group().of("nightly-1").team == "reports"
    monkeypatch.setenv(VARIABLE, json.dumps([{"match": "payments", "team": "money", "max_lag_seconds": 60}]))
    by_group = load_settings(file).limits_by_group()
    assert (by_group.of("payments").team, by_group.of("payments").max_lag_seconds) == ("money", 60)
    assert by_group.of("nightly-1") == DEFAULT_LIMITS


def test_a_variable_for_a_single_entry_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library ignores this variable if the list is set, too. Then a limit would be missing without an error."""
    monkeypatch.setenv(f"{VARIABLE}__0__TEAM", "money")
    remedy = f"{VARIABLE}__0__TEAM: no such setting: write all entries as a JSON list into {VARIABLE}"
    assert remedy in errors(None)
    monkeypatch.setenv(VARIABLE, '[{"match": "payments"}]')
    assert errors(None) == [remedy]


@pytest.mark.parametrize(
    ("entry", "error", "why"),
    [
        (
            "match = '(a'",
            "match: not a regular expression of RE2: missing ): (a (got '(a')",
            "otherwise the error would come at the first scrape",
        ),
        (
            "match = '(?=a)'",
            "match: not a regular expression of RE2: invalid perl operator: (?= (got '(?=a)')",
            "RE2 has no look-around",
        ),
        ("match = ''", "match: String should have at least 1 character (got '')", "an empty expression is a mistake"),
        ("team = 'x'", "match: Field required", "an entry without `match` applies to no known group"),
        (
            "match = 'a'\nmax_lag_seconds = -1",
            "max_lag_seconds: Input should be greater than 0 (got -1)",
            "a negative lag",
        ),
        (
            "match = 'a'\nmax_commit_gap_seconds = 0",
            "max_commit_gap_seconds: Input should be greater than 0 (got 0)",
            "each rebalance has a gap",
        ),
        (
            "match = 'a'\ncritical_lag_seconds = inf",
            "critical_lag_seconds: Input should be a finite number (got inf)",
            "to switch critical alerts off, set severity",
        ),
        ("match = 'a'\nmax_lag = 60", "max_lag: no such setting", "a misspelled limit would not apply"),
        (
            "match = 'a'\nseverity = 'page'",
            "severity: Input should be 'critical', 'warning' or 'info' (got 'page')",
            "the old name of critical",
        ),
        (
            "match = 'a'\nignore_alerts = 'sometimes'",
            "ignore_alerts: write true or false (got 'sometimes')",
            "neither true nor false",
        ),
    ],
)
def test_an_invalid_entry_is_refused_with_its_number(file: Path, entry: str, error: str, why: str) -> None:
    """Entries have no names. `config check --group` shows the same numbers."""
    file.write_text(f"{NIGHTLY}[[groups]]\n{entry}\n")
    assert errors(file) == [f"[[groups]] entry 2, {error}"], why


def test_config_check_shows_each_limit_of_a_group_and_its_source(file: Path) -> None:
    file.write_text(f"{NIGHTLY}[[groups]]\nmatch = '.*-1'\nteam = 'ops'\nignore_alerts = true\n")
    assert check_of_group(file, "nightly-1") == [
        "# Limits of group 'nightly-1'",
        "team = \"ops\"  # [[groups]] entry 2, match '.*-1'",
        "max_lag_seconds = 90000.0  # [[groups]] entry 1, match 'nightly-.*'",
        "critical_lag_seconds = 90000.0  # default; raised to max_lag_seconds",
        "max_commit_gap_seconds = 300  # default",
        'severity = "critical"  # default',
        "ignore_alerts = true  # [[groups]] entry 2, match '.*-1'",
    ]


def test_config_check_shows_the_limits_of_a_group_without_an_entry(file: Path) -> None:
    file.write_text("")
    assert [line.partition("  # ")[2] for line in check_of_group(file, "unheard-of")[1:]] == ["default"] * 6


def test_config_check_describes_each_setting_of_an_entry(file: Path) -> None:
    """`config check` is the reference of the settings, with and without entries."""
    for content in ("", NIGHTLY):
        file.write_text(content)
        output = CliRunner().invoke(config, ["check", "--config", str(file)]).output
        for name, field in GroupEntry.model_fields.items():
            assert f"# {name}: {field.description}\n" in output
        assert f"({VARIABLE})" in output


def test_config_check_refuses_invalid_entries_also_for_one_group(file: Path) -> None:
    file.write_text("[[groups]]\nmatch = '('\n")
    result = CliRunner().invoke(config, ["check", "--config", str(file), "--group", "payments"])
    assert result.exit_code != 0
    assert "[[groups]] entry 1, match" in result.output


def test_the_report_and_the_series_of_a_group_have_its_limits(file: Path) -> None:
    """Rules compare the lag of a group with the exported limits, and take the team from `group_info`."""
    file.write_text("[[groups]]\nmatch = 'orders'\nteam = 'shop'\nmax_lag_seconds = 60\nseverity = 'warning'\n")
    monitor_state = ClusterWatch(load_settings(file), lambda: 0, lambda: 0).monitor_state
    group_ids = ("orders", "payments")
    monitor_state.put_batch([GroupState(advanced([written(0, 1)], GroupSnapshot(name))) for name in group_ids], [])
    monitor_state.put_sample(ClusterSample(0), None)
    monitor_state.put_health(ready=True, was_ready=True)
    reports = monitor_state.reports(monitor_state.view(), is_fresh=True)
    assert reports["orders"].limits == replace(DEFAULT_LIMITS, team="shop", max_lag_seconds=60, severity="warning")
    assert reports["payments"].limits == DEFAULT_LIMITS
    families = {
        family.name: family.samples
        for family in parse_text(answer(Exporter([("prod", monitor_state)], lambda: 0, 30_000)))
    }
    series = families["rebalance_monitor_group_limit"]
    assert {(one.labels["group"], one.labels["limit"], one.value) for one in series} == {
        ("orders", "max_lag_seconds", 60),
        ("orders", "critical_lag_seconds", 3600),
        ("orders", "max_commit_gap_seconds", 300),
        ("payments", "max_lag_seconds", 600),
        ("payments", "critical_lag_seconds", 3600),
        ("payments", "max_commit_gap_seconds", 300),
    }
    labels = ("group", "team", "max_severity", "ignore_alerts")
    info = families["rebalance_monitor_group_info"]
    assert [tuple(one.labels[label] for label in labels) for one in info] == [
        ("orders", "shop", "warning", "false"),
        ("payments", "", "critical", "false"),
    ]


def blocks_of_document(language: str) -> list[str]:
    """Return the examples in `docs/LIMITS.md` that have this language, which can be empty."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    return [block for its_language, block in blocks if its_language == language]


def test_the_document_describes_every_setting_of_an_entry_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", DOCUMENT.read_text(), re.MULTILINE))
    assert [name for name in rows if not name.endswith("_url")] == list(GroupEntry.model_fields)
    assert [name for name in rows if name.endswith("_url")] == list(LinkSettings.model_fields)
    defaults = {"match": "required", "team": "none"}
    for name in GroupEntry.model_fields:
        default = json.dumps(getattr(DEFAULT_LIMITS, name, None))
        assert rows[name] == defaults.get(name, default if default.isdigit() else f"`{default}`")


def test_the_examples_in_the_document_give_the_limits_that_it_explains(file: Path) -> None:
    """A night that stays quiet depends on one entry. Users copy it from here."""
    entries, links = blocks_of_document("toml")
    file.write_text(entries + links)
    settings = load_settings(file)
    of = settings.limits_by_group().of
    assert (of("shop-cart").team, of("shop-cart").severity, of("shop-cart").max_lag_seconds) == ("shop", "warning", 600)
    assert (of("shop-payments").severity, of("shop-payments").critical_lag_seconds) == ("critical", 300)
    day_seconds = 24 * 3600
    assert of("nightly-report").max_lag_seconds > day_seconds
    assert of("nightly-report").critical_lag_seconds > day_seconds
    assert of("console-consumer-4711").ignore_alerts
    assert of("anything-else") == DEFAULT_LIMITS
    assert settings.links.grafana_url == "https://grafana.example.com"
    (printed,) = blocks_of_document("")
    assert check_of_group(file, "shop-payments") == printed.splitlines()


@pytest.mark.parametrize("name", ["page_url", "grafana_url", "runbook_url"])
@pytest.mark.parametrize(
    ("address", "expected", "why"),
    [
        ("", "", "not set"),
        ("https://monitor.example.com", "https://monitor.example.com", "a host"),
        ("http://10.0.0.1:9560/", "http://10.0.0.1:9560", "alerts add a path that begins with a slash"),
        ("https://example.com/kafka/monitor/", "https://example.com/kafka/monitor", "a path behind a proxy"),
        ("monitor.example.com", None, "without a scheme, a browser takes the link as relative"),
        ("javascript:alert(1)", None, "a scheme that a page must not open"),
        ("https:///groups", None, "no host"),
        ("https://user:password@example.com", None, "everybody who can read a metric would know the password"),
        ("https://example.com/?orgId=1", None, "alerts add a path, which cannot follow a query"),
        ("https://example.com/#top", None, "alerts add a path, which cannot follow an anchor"),
        ("https://example.com/a b", None, "a link ends at a space"),
        ("https://[::1", None, "an IPv6 address without its end"),
        ("https://example.com:65536", None, "the highest port is 65535"),
        ("https://:443", None, "a port without a host"),
        ("https://example.com/{{ .Value }}", None, "braces are code in Prometheus' templates"),
    ],
)
def test_the_addresses_of_links_are_checked(
    file: Path, name: str, address: str, expected: str | None, why: str
) -> None:
    file.write_text(f"[links]\n{name} = '{address}'\n")
    if expected is None:
        (line,) = errors(file)
        assert line.startswith(f"links.{name}: an address must be http(s)://HOST"), why
    else:
        assert getattr(load_settings(file).links, name) == expected, why
