"""Tests of sending external facts to the query: once, again after some time, and never lost for ever."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from streaming.combine.combiner import GROUP_KIND
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.events import ExternalFact, GroupForgotten, SkipSettled, TopicMetadata, TopicsSampled, decode_event
from streaming.run.samples.feedback_writer import (
    SEND_AGAIN_BATCHES,
    SEND_AGAIN_SECONDS,
    FeedbackWriter,
    pending_by_group,
)
from streaming.spark.files import Files
from streaming.state.monitor_view import MonitorView
from tests.streaming.groups import advanced, sampled, tombstoned, written


class LocalFiles(Files):
    """Files on the local disk. Hadoop's client would need a JVM."""

    def __init__(self, root: Path) -> None:
        self.folder = root

    def write(self, name: str, content: bytes) -> None:
        """Write the file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def sent(self) -> list[list[tuple[str, ExternalFact]]]:
        """Return the (group, event) pairs of each file, and delete the files."""
        sent = []
        for path in sorted(self.folder.rglob("*.json"), key=lambda one: one.stat().st_mtime_ns):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            assert {row["state_kind"] for row in rows} == {GROUP_KIND}
            sent.append([(row["state_key"], decode_event(base64.b64decode(row["payload"]))) for row in rows])
            path.unlink()
        return sent  # type: ignore[return-value]


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path)


def topics(partitions: int | None, sampled_at_ms: int = 1) -> TopicsSampled:
    """Return a sample of one topic."""
    return TopicsSampled({"orders": TopicMetadata(partitions, sampled_at_ms)})


def test_a_fact_is_sent_once_and_again_only_after_some_time_without_effect(files: LocalFiles) -> None:
    feedback_writer = FeedbackWriter(files)
    feedback_writer.send({"g": (topics(3),)}, 100.0, last_batch_ms=1)
    assert files.sent() == [[("g", topics(3))]]
    feedback_writer.send({"g": (topics(3),)}, 100.0 + SEND_AGAIN_SECONDS - 1, last_batch_ms=2)
    assert files.sent() == []
    feedback_writer.send({"g": (topics(3),)}, 100.0 + SEND_AGAIN_SECONDS, last_batch_ms=2)
    assert files.sent() == [[("g", topics(3))]], "the fact was lost, so it is sent again"


def test_facts_are_not_sent_again_while_the_query_is_down(files: LocalFiles) -> None:
    """Before, an outage of a day wrote 2,880 files with the same facts, and the first batch read all of them."""
    feedback_writer = FeedbackWriter(files)
    for pause in range(2_880):
        feedback_writer.send({"g": (topics(3),)}, pause * SEND_AGAIN_SECONDS, last_batch_ms=1)
    assert files.sent() == [[("g", topics(3))]]


def test_facts_are_not_sent_again_while_a_long_batch_runs(files: LocalFiles) -> None:
    """One batch evaluated 10,000 new groups in 84 s.

    Their facts were sent again after 30 s, which caused a second batch of 105 s.
    """
    feedback_writer = FeedbackWriter(files)
    feedback_writer.send({"g": (topics(3),)}, 100.0, batch_seconds=49.0)
    files.sent()
    feedback_writer.send({"g": (topics(3),)}, 100.0 + SEND_AGAIN_BATCHES * 49.0 - 1, 49.0, last_batch_ms=1)
    assert files.sent() == []
    feedback_writer.send({"g": (topics(3),)}, 100.0 + SEND_AGAIN_BATCHES * 49.0, 49.0, last_batch_ms=1)
    assert files.sent() == [[("g", topics(3))]]


@pytest.mark.parametrize(
    ("later", "is_new", "why"),
    [
        ((topics(3, sampled_at_ms=9),), False, "a newer sample with the same content"),
        ((topics(4),), True, "a different count"),
        ((topics(3), SkipSettled(7, log_was_whole=True)), True, "one additional fact"),
        ((SkipSettled(7, log_was_whole=True),), True, "a different fact"),
    ],
)
def test_two_facts_are_equal_if_their_content_is_equal(
    files: LocalFiles, later: tuple[ExternalFact, ...], is_new: bool, why: str
) -> None:
    feedback_writer = FeedbackWriter(files)
    feedback_writer.send({"g": (topics(3),)}, 0.0)
    files.sent()
    feedback_writer.send({"g": later}, 1.0)
    assert bool(files.sent()) == is_new, why


def test_a_fact_that_had_its_effect_is_sent_at_once_if_it_is_missing_again(files: LocalFiles) -> None:
    feedback_writer = FeedbackWriter(files)
    feedback_writer.send({"g": (topics(3),)}, 0.0)
    feedback_writer.send({}, 1.0)
    feedback_writer.send({"g": (topics(3),)}, 2.0)
    assert files.sent() == [[("g", topics(3))]] * 2
    assert feedback_writer._sent.keys() == {"g"}, "a sent fact is remembered only while the group lacks it"
    feedback_writer.send({}, 3.0)
    assert feedback_writer._sent == {}


def test_all_groups_share_one_file_and_without_facts_there_is_none(files: LocalFiles) -> None:
    feedback_writer = FeedbackWriter(files)
    feedback_writer.send({}, 0.0)
    assert files.sent() == []
    feedback_writer.send({"b": (topics(1),), "a": (GroupForgotten(), SkipSettled(1, log_was_whole=False))}, 0.0)
    assert files.sent() == [[("a", GroupForgotten()), ("a", SkipSettled(1, log_was_whole=False)), ("b", topics(1))]]


@pytest.mark.parametrize("group", ["", '"\\', "\n", "\x00", "\N{ROCKET}", "\u2028", "a" * 3000])
def test_any_group_name_is_one_line(files: LocalFiles, group: str) -> None:
    """Spark reads one fact per line. A line break in a name would lose facts of other groups."""
    FeedbackWriter(files).send({group: (topics(1),), "other": (topics(2),)}, 0.0)
    ((*sent,),) = files.sent()
    assert dict(sent) == {group: topics(1), "other": topics(2)}


def test_a_file_that_could_not_be_written_counts_as_not_sent(
    files: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*_: object) -> None:
        raise OSError("disk full")

    feedback_writer = FeedbackWriter(files)
    with monkeypatch.context() as patch:
        patch.setattr(files, "write", disk_full)
        with pytest.raises(OSError, match="disk full"):
            feedback_writer.send({"g": (topics(1),)}, 0.0)
    feedback_writer.send({"g": (topics(1),)}, 1.0)
    assert files.sent() == [[("g", topics(1))]]


def test_groups_that_lack_no_fact_are_left_out() -> None:
    sample = ClusterSample(99_000, {"orders": TopicMetadata(1, 99_000)})
    groups = {
        "new": GroupState(advanced([written(10, 1)])),
        "known": GroupState(advanced([written(10, 1), sampled(50_000, orders=1)])),
        "dead": GroupState(advanced([written(10, 1), tombstoned(11)])),
        "skipped": GroupState(advanced([written(10, 1), written(20, 3), sampled(50_000, orders=1)])),
    }
    view = MonitorView(groups, decided_skips={("g", 20): True})
    assert pending_by_group(view, sample) == {
        "new": (TopicsSampled({"orders": TopicMetadata(1, 99_000)}),),
        "skipped": (SkipSettled(20, log_was_whole=True),),
    }
    assert pending_by_group(MonitorView(groups), sample).keys() == {"new"}, "a skip without a decision waits"
