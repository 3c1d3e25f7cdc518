"""Rule 9: `/metrics`, tables, pages, API and command line show the same values of a group.

Before, the metric was `rebalancing` where page and table had `drift`. Groups that only commit had lag in `/metrics` but
no page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streaming.cli.text.conditions import active_sentence
from streaming.cli.text.group_output import reported_cells
from streaming.delta.rows import condition_rows, lag_cause_row, lag_rows
from streaming.delta.tables import ASSIGNMENT_DRIFT, ASSIGNMENT_IMBALANCE, GROUP_GENERATIONS, GROUP_LAG, REBALANCES
from streaming.evaluation.conditions.condition_tracker import ConditionChange
from streaming.evaluation.incidents.evidence import lag_cause_name
from streaming.evaluation.rebalances.failed_rebalances import decide_skips
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance
from streaming.evaluation.report import GroupReport
from streaming.page.application import Pages
from streaming.page.rendering import amount, catch_up, duration, utc, whole
from streaming.prometheus.metrics import Exporter
from tests.streaming.http.answers import answer
from tests.streaming.page.test_application import STRATEGIES as PAGE_STRATEGIES
from tests.streaming.page.test_application import Seen, ask, cluster_view
from tests.streaming.prometheus.test_metrics import named
from tests.streaming.situations import CLUSTER, GROUP, NOW_MS, SITUATIONS, Shown, Situation, shown
from tests.streaming.table_rows import update_rows

STALE_AFTER_MS = 30_000
"""The value that `cluster_view` of the pages uses."""
NOTHING = "\N{EN DASH}"


def report_of(had: Shown, situation: Situation) -> GroupReport | None:
    """Return the report from which every output is rendered."""
    return had.monitor_state.reports(had.monitor_state.view(), is_fresh=is_fresh(situation)).get(GROUP)


def is_fresh(situation: Situation) -> bool:
    return situation.sampled_ago_ms <= STALE_AFTER_MS


def facts(report: GroupReport) -> dict[str, Any]:
    """Return the compared values, with the names of the API fields."""
    membership, assignment, lag, total = report.membership, report.assignment, report.lag, report.fairness.partitions
    return {
        "group_type": membership.group_type,
        "state": membership.state,
        "protocol_type": membership.protocol_type,
        "protocol": membership.protocol,
        "protocol_source": membership.protocol_source,
        "generation_id": membership.generation_id,
        "member_count": membership.members,
        "coordinator": membership.coordinator,
        "verdict": assignment.verdict,
        "drift_partitions": assignment.drift_partitions,
        "unowned_partitions": assignment.unowned_partitions,
        "unowned_records": report.unowned_records,
        "max_partitions": total and total.largest,
        "excess_partitions": total and total.excess,
        "idle_members": total and total.idle,
        "score": total and total.score,
        "remedy": report.fairness.remedy,
        "conditions": {(one.name, one.since_ms) for one in report.conditions},
        "lag": lag.records,
        "lag_unknown": set(lag.unknown),
        "lag_seconds": lag.seconds,
        "status": lag.status,
        "records_lost": lag.records_lost,
        "seconds_until_lost": lag.seconds_until_lost,
        "last_commit_ms": lag.last_commit_ms,
        "consumed_records_per_second": lag.consumed_records_per_second,
        "produced_records_per_second": lag.produced_records_per_second,
        "catch_up_seconds": lag.catch_up_seconds,
        "rebalances_total": report.rebalances.total,
        "cause": cause_labels(report),
    }


def cause_labels(report: GroupReport) -> dict[str, str] | None:
    """Return the cause of the lag with the labels of its metric."""
    cause = report.cause
    return cause and {
        "cause": lag_cause_name(cause.kind, cause.reason),
        "topic": cause.topic,
        "partition": "" if cause.partition is None else str(cause.partition),
        "client_id": cause.client_id,
        "client_host": cause.client_host,
    }


def metrics(had: Shown) -> Mapping[tuple[str, tuple[tuple[str, str], ...]], float]:
    exporter = Exporter([(CLUSTER, had.monitor_state)], lambda: NOW_MS, STALE_AFTER_MS)
    samples = [one for family in text_string_to_metric_families(answer(exporter)) for one in family.samples]
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value for one in samples if one.labels.get("group") == GROUP
    }


def shown_by_metrics(had: Shown) -> dict[str, Any]:
    """Return the same facts from `/metrics`. A missing series or an empty label means unknown."""
    series = metrics(had)

    def value(name: str, **labels: str) -> float | None:
        found = named(series, f"rebalance_monitor_{name}", group=GROUP, **labels)
        assert len(found) <= 1, f"{name} has one series"
        return next(iter(found.values()), None)

    def labels(name: str) -> list[dict[str, str]]:
        return [dict(labelled) for (family, labelled), _ in series.items() if family == f"rebalance_monitor_{name}"]

    (state,) = labels("group_info")
    verdict, status, skew = labels("assignment_verdict"), labels("group_status"), labels("topic_skew")
    own = verdict[0]["strategy"] if verdict else None
    cause = [
        {name: text for name, text in one.items() if name not in {"cluster", "group"}}
        for one in labels("group_lag_cause_info")
    ]
    last_commit = value("group_last_commit_timestamp_seconds")
    since = named(series, "rebalance_monitor_group_condition_timestamp_seconds", group=GROUP)
    return {
        "group_type": state["group_type"],
        "state": state["state"],
        "protocol_type": state["protocol_type"] or None,
        "protocol": state["protocol"] or None,
        "protocol_source": state["protocol_source"] or None,
        "generation_id": value("group_generation"),
        "member_count": value("group_members"),
        "coordinator": int(state["coordinator"]) if state["coordinator"] else None,
        "verdict": verdict[0]["verdict"] if verdict else None,
        "drift_partitions": None if own is None else value("drift_partitions", strategy=own),
        "unowned_partitions": value("unowned_partitions"),
        "unowned_records": value("unowned_records"),
        "max_partitions": value("member_partitions_max"),
        "excess_partitions": value("excess_partitions"),
        "idle_members": value("idle_members"),
        "score": value("imbalance_score", measure="partitions", scope="member"),
        "remedy": (skew[0]["remedy"] or None) if skew else None,
        "conditions": {(name.removeprefix("condition="), int(1000 * at)) for name, at in since.items()},
        "lag": value("group_lag"),
        "lag_unknown": {one["reason"] for one in labels("lag_unknown_partitions")},
        "lag_seconds": value("group_lag_seconds"),
        "status": status[0]["status"] if status else None,
        "records_lost": value("group_records_lost"),
        "seconds_until_lost": value("group_seconds_until_lost"),
        "last_commit_ms": None if last_commit is None else round(1000 * last_commit),
        "consumed_records_per_second": value("group_consumed_records_per_second"),
        "produced_records_per_second": value("group_produced_records_per_second"),
        "catch_up_seconds": value("group_catch_up_seconds"),
        "rebalances_total": value("rebalances_total"),
        "cause": cause[0] if cause else None,
    }


def _without_zeros(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values as `/metrics` shows them. Some metrics have no series for 0."""
    return {**values, **{name: values[name] or None for name in ("unowned_partitions", "records_lost")}}


def shown_by_api(document: dict[str, Any]) -> dict[str, Any]:
    """Return the same facts from the API."""
    of_shares = ("max_partitions", "excess_partitions", "idle_members", "score", "remedy")
    return {
        **{name: document[name] for name in facts_named(document)},
        **{name: document["shares"][name] for name in of_shares},
        "conditions": {(one["condition"], one["since_ms"]) for one in document["conditions"]},
        "lag_unknown": set(document["lag_unknown"]),
        "cause": _labels_of_cause(document["cause"]),
    }


def _labels_of_cause(cause: dict[str, Any] | None) -> dict[str, str] | None:
    if cause is None:
        return None
    labels = {name: cause[name] for name in ("topic", "client_id", "client_host")}
    labels["cause"] = lag_cause_name(cause["cause"], cause["reason"])
    return {**labels, "partition": "" if cause["partition"] is None else str(cause["partition"])}


def facts_named(document: Mapping[str, Any]) -> list[str]:
    of_report = (
        "group_type state protocol_type protocol protocol_source generation_id member_count verdict drift_partitions "
        "unowned_partitions unowned_records lag lag_seconds status records_lost rebalances_total coordinator "
        "seconds_until_lost last_commit_ms consumed_records_per_second produced_records_per_second catch_up_seconds"
    )
    return [name for name in of_report.split() if name in document]


def strategy_words(report: GroupReport) -> str:
    """Return the strategy as a page shows it."""
    reported = " reported by the broker" if report.membership.protocol_source == "broker" else ""
    return f"{report.membership.protocol or NOTHING}{reported}"


def flow_words(report: GroupReport) -> list[str]:
    """Return the values of commits, rates, leader and coordinator as a page shows them."""
    lag, leader = report.lag, report.members.leader
    coordinator = report.membership.coordinator
    words = [f" coordinator {'?' if coordinator is None else f'broker {coordinator}'} "]
    if lag.last_commit_ms is not None:
        words += [f" last commit {utc(lag.last_commit_ms)} ", f" consumed {rate(lag.consumed_records_per_second)} "]
        words += [f" produced {rate(lag.produced_records_per_second)} catches up in "]
    if lag.catch_up_seconds is not None:
        words.append(f" catches up in {duration(lag.catch_up_seconds)} ")
    if lag.worst is not None:
        words.append(f" worst partition {lag.worst[0]} -{lag.worst[1]} ")
    if leader is not None:
        words.append(f" leader {leader.client_id} {leader.client_host} ")
    return words


def command_cells(report: GroupReport) -> list[str]:
    """Return the values of lag, commits, rates, leader and timeouts as `rebalance-monitor groups` shows them."""
    lag, members = report.lag, report.members
    rates = lag.consumed_records_per_second, lag.produced_records_per_second
    timeouts = (members.session_timeouts_ms, members.rebalance_timeouts_ms)
    unknown_leader = "?" if report.membership.group_type == "classic" else ""
    of_members = [
        unknown_leader if members.leader is None else f"{members.leader.client_id} {members.leader.client_host}",
        *(", ".join(duration(one / 1000) for one in each) or "?" for each in timeouts),
    ]
    return [
        whole(lag.records),
        report.cause.text if report.cause else "",
        utc(lag.last_commit_ms),
        *map(amount, rates),
        catch_up(lag.records, *rates, lag.catch_up_seconds),
        *(["", "", ""] if report.membership.members == 0 else of_members),
    ]


def rate(records_per_second: float | None) -> str:
    return "?" if records_per_second is None else f"{amount(records_per_second)}/s"


def pages_of(had: Shown, tables: Path) -> Pages:
    return Pages([cluster_view(CLUSTER, had.monitor_state, tables, NOW_MS)], PAGE_STRATEGIES)


@pytest.mark.parametrize("name", SITUATIONS)
def test_metrics_page_and_api_show_the_values_of_the_report(name: str, tmp_path: Path) -> None:
    situation = SITUATIONS[name]
    had = shown(situation)
    report, pages = report_of(had, situation), pages_of(had, tmp_path)
    if report is None:
        assert metrics(had) == {}, "no series of a group that is gone"
        assert [ask(pages, f"/{where}/{GROUP}").status[:3] for where in ("groups", "api/v1/groups")] == ["404", "404"]
        return
    expected = facts(report)
    if is_fresh(situation):
        assert shown_by_metrics(had) == _without_zeros(expected), situation.why
    else:
        assert metrics(had) == {}, "the cluster is not ready"
    document = ask(pages, f"/api/v1/groups/{GROUP}").json()
    assert shown_by_api(document) == expected, situation.why
    (listed,) = ask(pages, "/api/v1/groups").json()["groups"]
    assert shown_by_api(listed) == expected, situation.why
    assert reported_cells(listed, verbose=True) == command_cells(report), situation.why
    leader = report.members.leader
    assert (document["leader"] or {}).get("member_id") == (leader and leader.member_id), situation.why
    assert [one["session_timeout_ms"] for one in document["members"]] == [
        one.session_timeout_ms for one in report.members.each
    ], situation.why
    assert {(one["topic"], one["partition"]) for one in [document["worst_partition"]] if one} == {
        one for one in [report.lag.worst] if one
    }, situation.why
    assert [one["text"] for one in document["troubles"]] == [trouble.text for trouble in report.troubles]
    text = Seen(ask(pages, f"/groups/{GROUP}").text).text
    for text_part in (
        f"state {report.membership.state} type {report.membership.group_type} ",
        f" strategy {strategy_words(report)} ",
        f" members {whole(report.membership.members)} ",
        f" rebalances {whole(report.rebalances.total)}",
        *flow_words(report),
        *(trouble.text for trouble in report.troubles),
        *([f"Cause of the lag. {report.cause.text}"] if report.cause else []),
    ):
        assert text_part in text, situation.why
    line = Seen(ask(pages, "/").text).text
    assert all(trouble.word in line for trouble in report.troubles), situation.why
    assert strategy_words(report) in line, situation.why


@pytest.mark.parametrize("name", SITUATIONS)
def test_tables_and_commands_show_the_values_of_the_report(name: str) -> None:
    """Rows are as of a record, so they do not contain later samples."""
    situation = SITUATIONS[name]
    had = shown(situation)
    report = report_of(had, situation)
    if report is None:
        return
    history = (snapshot for update in had.updates for snapshot in update.history)
    rows = update_rows(CLUSTER, had.updates, decide_skips({}, history, had.partition_states))
    if rows[GROUP_GENERATIONS] and report.rebalances.total is not None:
        last = rows[GROUP_GENERATIONS][-1]
        assert last["rebalances_total"] == report.rebalances.total
        assert last["rebalances_failed_total"] == report.rebalances.failed
        assert last["empty_transitions_total"] == report.rebalances.empty_transitions
        if not situation.is_later_than_records:
            assert last["protocol"] == report.membership.protocol
            assert last["protocol_source"] == report.membership.protocol_source
            assert last["generation_id"] == report.membership.generation_id
            assert report.membership.members in {None, len(last["members"] or ())}
    own = [row for row in rows[ASSIGNMENT_DRIFT] if row["is_group_strategy"]]
    is_present = bool(own) and own[-1]["generation_id"] == report.membership.generation_id
    if is_present and report.assignment.own is not None and not situation.is_later_than_records:
        reported, verdict = own[-1], report.assignment.own
        assert (reported["strategy"], reported["verdict"]) == (verdict.strategy, verdict.verdict), situation.why
        assert reported["drift_partitions"] == verdict.drift_partitions
    shared, total = [row for row in rows[ASSIGNMENT_IMBALANCE] if row["scope"] == "member"], report.fairness.partitions
    if shared and total is not None and shared[-1]["generation_id"] == report.membership.generation_id:
        assert (shared[-1]["largest"], shared[-1]["excess"], shared[-1]["score"]) == (
            total.largest,
            total.excess,
            total.score,
        )
    if not report.is_blocked and report.lag.records is not None:
        lag = lag_rows(GROUP_LAG, CLUSTER, NOW_MS, had.lag.partitions).to_pylist()
        assert sum(row["lag"] for row in lag) == report.lag.records
    if report.cause is not None:
        row = lag_cause_row(CLUSTER, NOW_MS, GROUP, report.cause)
        assert (row["cause"], row["reason"], row["text"]) == (report.cause.kind, report.cause.reason, report.cause.text)
    for text in (describe_rebalance(row) for row in rows[REBALANCES]):
        for member in report.members.each:
            assert f"{member.client_id} ({member.client_host})" not in text, "a member has the same text everywhere"
    changes = [ConditionChange(GROUP, one, True, None) for one in report.conditions]
    sentences = [active_sentence(row) for row in condition_rows(CLUSTER, NOW_MS, changes)]
    assert all(one.detail in line for one, line in zip(report.conditions, sentences, strict=True))


def test_readers_of_a_group_that_only_commits_are_unknown(tmp_path: Path) -> None:
    """Its clients call assign(). It would be wrong to show that no client reads."""
    pages = pages_of(shown(SITUATIONS["commits only"]), tmp_path)
    partitions = ask(pages, f"/api/v1/groups/{GROUP}").json()["partitions"]
    assert {(one["owner"], one["is_owner_known"]) for one in partitions} == {(None, False)}
    assert "The group only commits offsets." in Seen(ask(pages, f"/groups/{GROUP}").text).text


def test_the_owners_of_a_late_streams_group_are_unknown_everywhere(tmp_path: Path) -> None:
    """KIP-1071: the records contain tasks. Before, partitions had no owner, and the lag had the cause `no_owner`."""
    had = shown(SITUATIONS["late streams group"])
    pages = pages_of(had, tmp_path)
    group = ask(pages, f"/api/v1/groups/{GROUP}").json()
    assert (group["cause"]["cause"], group["cause"]["reason"]) == ("unknown", "owners_unknown")
    assert {(one["owner"], one["is_owner_known"]) for one in group["partitions"]} == {(None, False)}
    assert [(one["subscribed_topics"], one["assigned"], one["target"]) for one in group["members"]] == [(None,) * 3]
    (stored,) = update_rows(CLUSTER, had.updates, {})[GROUP_GENERATIONS][-1]["members"]
    assert [stored[name] for name in ("subscription", "assignment", "target", "pending_revocation")] == [None] * 4
    assert not any("_member_" in name for name, _ in metrics(had))


def test_every_situation_that_the_monitor_distinguishes_is_included() -> None:
    """Each verdict, each reason for an unknown lag and each kind of group must be in a situation."""
    reports = [report_of(shown(one), one) for one in SITUATIONS.values()]
    reported = [report for report in reports if report is not None]
    assert {report.membership.group_type for report in reported} == {"classic", "consumer", "share", "streams"}
    assert {report.assignment.verdict for report in reported} >= {
        None, "match", "drift", "unknown", "rebalancing", "not_evaluated"
    }  # fmt: skip
    assert {report.membership.state for report in reported} >= {
        "Stable", "Empty", "Unknown", "Reconciling", "Assigning", "PreparingRebalance", "NotReady"
    }  # fmt: skip
    catching_up = [report.group_id for report in reported if report.lag.catch_up_seconds is not None]
    assert {report.cause.reason for report in reported if report.cause} >= {"catching_up", "no_owner", "owners_unknown"}
    assert catching_up, "a situation has rates, so that the outputs can differ"
    assert any(report.members.leader for report in reported)
    assert len(SITUATIONS) >= 25
