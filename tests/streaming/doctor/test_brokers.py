"""Tests of the findings about brokers, and of the first report of `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from streaming.config.load import Settings
from streaming.config.settings import KafkaSettings
from streaming.doctor.ask_brokers import CHECK_SECONDS, ClusterCheck, measure_clocks
from streaming.doctor.brokers import MeasuredClocks, clock_findings
from streaming.doctor.finding import FAILED, NOT_CHECKED, NOTE, OK, Finding
from streaming.doctor.first_run import FirstSample, first_run_lines
from streaming.doctor.permissions import PERMISSIONS, READ_LOG, TOPIC_CONFIGS, Permissions
from streaming.embedded.ports import free_port
from streaming.evaluation.lag.broker_clocks import ClockOffset
from streaming.events import OFFSETS_TOPIC
from streaming.group.listing import GroupListing, ListedGroup, ListingGap, Unanswered
from streaming.group.not_known import POLLED
from streaming.protocol.record_batches import batch_times
from tests.streaming.protocol.test_record_batches import batch


class Brokers:
    """Two brokers. The advertised address of the first cannot be reached. `sent` are the brokers of all requests."""

    kafka_version = "4.2"

    def __init__(self, *_: object) -> None:
        self.sent: list[int | None] = []

    def broker_addresses(self) -> Mapping[int, str]:
        """Return the addresses in the metadata."""
        return {1: "kafka-1.internal:9092", 2: "kafka-2:9092"}

    def expect_cluster(self, cluster_id: str | None) -> None:
        """Do nothing, because the brokers belong to the expected cluster."""

    def ask_each(self, requests: Sequence[tuple[int | None, Any]]) -> list[Any]:
        """Answer the first request for the second broker. The network is lost after that request."""
        is_lost = bool(self.sent)
        self.sent += [broker for broker, _ in requests]
        return [
            MetadataResponse() if broker == 2 and not is_lost else KafkaConnectionError("DNS failure")
            for broker, _ in requests
        ]

    def close(self) -> None:
        """Do nothing."""


def checked(monkeypatch: pytest.MonkeyPatch, connection: object) -> list[Finding]:
    """Check a cluster with this connection."""
    monkeypatch.setattr("streaming.doctor.ask_brokers.Connection", lambda *_: connection)
    return list(ClusterCheck(Settings(), lambda: 0, lambda _: None).findings())


def test_each_advertised_address_must_answer_not_only_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most common mistake: the bootstrap address works, but brokers advertise a name from inside the network."""
    good, bad, *_ = checked(monkeypatch, Brokers())
    assert (good.status, "1 of 2 answer, Kafka 4.2" in good.text) == (OK, True)
    assert (bad.status, "kafka-1.internal:9092" in bad.text, "DNS failure" in bad.text) == (FAILED, True, True)
    assert "advertised.listeners" in (bad.remedy or "")


def test_a_broker_that_did_not_answer_receives_no_further_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall drops the packets of the first broker. Each request to it waited for a timeout, for minutes."""
    brokers = Brokers()
    clocks = checked(monkeypatch, brokers)[-1]
    assert (brokers.sent.count(1), brokers.sent.count(None)) == (1, 0), "the client could select the first broker"
    assert brokers.sent.count(2) > 1
    assert (clocks.status, clocks.text) == (
        NOT_CHECKED,
        "it is unknown whether the monitor can read __consumer_offsets",
    ), "no broker answered, which is not the same as a missing permission"


@pytest.mark.parametrize("reaches_a_broker", [False, True])
def test_without_an_answer_each_point_is_reported_once_and_no_right_is_ok(
    reaches_a_broker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network can fail before the connection, or after it."""
    servers = f"127.0.0.1:{free_port()}"
    settings = Settings(kafka=KafkaSettings(bootstrap_servers=servers, connect_timeout_seconds=0.1))
    if reaches_a_broker:
        monkeypatch.setattr("streaming.doctor.ask_brokers.Connection", Brokers)
    findings = list(ClusterCheck(settings, lambda: 0, lambda _: None).findings())
    unchecked = [finding.point for finding in findings if finding.status == NOT_CHECKED]
    assert unchecked == [*(f"permission {permission.text}" for permission in PERMISSIONS), "clocks"]
    assert FAILED in {finding.status for finding in findings if finding.point == "brokers"}


@pytest.mark.parametrize(
    ("offset", "status", "text", "why"),
    [
        (ClockOffset(-40, 900), OK, "at most 0.9 s", "NTP runs"),
        (ClockOffset(59_000, 61_000), NOTE, "60.0 s (+/- 1.0 s) ahead of", "the monitor corrects times"),
        (ClockOffset(-61_000, -59_000), NOTE, "behind", "as above"),
        (ClockOffset(-1_000, 9_000), OK, "at most 9.0 s", "the bounds are wide, so no difference is proven"),
        (None, NOT_CHECKED, "too few commits", "an idle broker writes no record with its time"),
    ],
)
def test_a_clock_offset_is_measured_and_never_guessed(
    offset: ClockOffset | None, status: str, text: str, why: str
) -> None:
    (finding,) = clock_findings(MeasuredClocks({} if offset is None else {7: offset}, [7], (), 16))
    assert (finding.status, text in finding.text) == (status, True), why


AHEAD_MS, EPOCH_MS = 60_000, 1_700_000_000_000


class Log:
    """Two partitions of `__consumer_offsets`, on brokers 1 and 2. A group commits each second on both.

    The clocks of the brokers are a minute ahead. Broker 2 does not answer after `silent_after` requests.
    """

    def __init__(self, silent_after: int = 1_000_000) -> None:
        self.now = EPOCH_MS
        self._silent_after = silent_after
        self.sent_to_2 = 0

    def now_ms(self) -> int:
        """Return the time of this machine."""
        return self.now

    def pause(self, seconds: float) -> None:
        """Let the time pass."""
        self.now += int(seconds * 1000)

    def ask_each(self, requests: Sequence[tuple[int, Any]]) -> list[Any]:
        """Answer requests for metadata, end offsets and records."""
        return [self._answer(broker, request) for broker, request in requests]

    def _answer(self, broker: int, request: Any) -> Any:  # noqa: ANN401 - messages
        self.sent_to_2 += broker == 2
        if broker == 2 and self.sent_to_2 > self._silent_after:
            self.now += 5_000
            return KafkaTimeoutError()
        if request.name == "MetadataRequest":
            topic = MetadataResponse.MetadataResponseTopic
            leaders = [topic.MetadataResponsePartition(partition_index=one, leader_id=one) for one in (1, 2)]
            return MetadataResponse(topics=[topic(name=OFFSETS_TOPIC, partitions=leaders)])
        (partition,) = request.topics[0].partitions
        if request.name == "ListOffsetsRequest":
            offsets = ListOffsetsResponse.ListOffsetsTopicResponse
            end = (self.now - EPOCH_MS) // 1000
            one = offsets.ListOffsetsPartitionResponse(partition_index=partition.partition_index, offset=end)
            return ListOffsetsResponse(topics=[offsets(name=OFFSETS_TOPIC, partitions=[one])])
        written_ms = EPOCH_MS + 1000 * partition.fetch_offset + AHEAD_MS
        fetched = FetchResponse.FetchableTopicResponse.PartitionData(
            partition_index=0, records=batch(partition.fetch_offset, 1, timestamp_ms=written_ms)
        )
        return FetchResponse(
            responses=[FetchResponse.FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=[fetched])]
        )


def measured(log: Log, answering: Sequence[int], seconds: float = CHECK_SECONDS) -> MeasuredClocks:
    return measure_clocks(log, answering, log.now + int(1000 * seconds), log.now_ms, log.pause)  # type: ignore[arg-type]


def test_the_clock_of_a_broker_is_estimated_from_its_new_records() -> None:
    log = Log()
    clocks = measured(log, [1, 2])
    assert (set(clocks.leaders), set(clocks.unanswered)) == ({1, 2}, set())
    assert clocks.offsets[1].lowest_ms <= AHEAD_MS <= clocks.offsets[1].highest_ms
    assert log.now - EPOCH_MS < 10_000, "the check ends when the offset is known"


@pytest.mark.parametrize(
    ("answering", "silent_after", "requests"),
    [([1], 0, 0), ([1, 2], 3, 4)],
    ids=["unreachable from the start", "silent during the measurement"],
)
def test_the_clock_of_a_silent_broker_is_not_checked_and_nobody_waits_for_it(
    answering: Sequence[int], silent_after: int, requests: int
) -> None:
    """Each sample asked all leaders. One silent leader made all clocks unknown, after minutes of timeouts."""
    log = Log(silent_after)
    known, silent = clock_findings(measured(log, answering))
    assert (known.status, log.sent_to_2) == (NOTE, requests)
    assert (silent.status, silent.text) == (NOT_CHECKED, "broker 2 did not answer")


def test_the_measurement_of_clocks_ends_in_time() -> None:
    """The connection took most of the time of the check, because a broker was unreachable."""
    log = Log()
    clocks = measured(log, [1, 2], seconds=5)
    assert log.now - EPOCH_MS <= 5_000
    assert "too few commits on broker 1 in 4 s" in next(clock_findings(clocks)).text


def test_the_time_of_a_batch_is_the_time_of_its_first_record() -> None:
    assert list(batch_times(batch(7, 3, timestamp_ms=EPOCH_MS))) == [(7, EPOCH_MS)]


GROUPS = {"orders": "classic", "shop": "classic", "new": "consumer", "jobs": "share", "old": None}


def first_sample(permissions: Permissions, *gaps: ListingGap, **changes: Any) -> FirstSample:  # noqa: ANN401 - any field
    listed = {name: ListedGroup(group_type, "consumer", "Stable", 1) for name, group_type in GROUPS.items()}
    given = {"brokers": 3, "kafka_version": "4.2", "not_known": (), "page": "http://localhost:9560/", **changes}
    return FirstSample(listing=GroupListing(0, listed, gaps), permissions=permissions, **given)


def test_the_first_report_of_a_good_installation_has_four_lines() -> None:
    """The fourth group type is the reason for the line about what is not known."""
    assert list(first_run_lines(first_sample(dict.fromkeys(PERMISSIONS, True)))) == [
        "found 3 brokers (Kafka 4.2) and 5 groups (2 classic, 1 consumer, 1 share, 1 unknown type)",
        "no permission is missing",
        "unknown: whether the assignment of share groups is fair",
        (
            "open http://localhost:9560/ to see the groups. Next steps: configure Prometheus to scrape /metrics"
            " and to load dashboards/rules. To see which steps are missing, run `rebalance-monitor doctor`"
        ),
    ]


@pytest.mark.parametrize(
    ("first", "expected", "why"),
    [
        (
            first_sample({TOPIC_CONFIGS: False}),
            ["missing permissions: DESCRIBE_CONFIGS on all topics (optional)", TOPIC_CONFIGS.unknown],
            "the same words as `doctor`",
        ),
        (
            first_sample({READ_LOG: Unanswered("no_answer")}),
            ["permissions that could not be checked: READ on the topic __consumer_offsets"],
            "a check that failed does not mean that the permission exists",
        ),
        (first_sample({}, not_known=POLLED), ["generation id, leader, rebalances between polls"], "admin-api"),
        (first_sample({}, ListingGap(2, "no_answer")), ["the list of groups is incomplete"], "a broker is down"),
        (first_sample({}, brokers=None), ["an unknown number of brokers"], "unknown is not 0"),
    ],
)
def test_the_first_report_names_what_is_missing(first: FirstSample, expected: list[str], why: str) -> None:
    report = "\n".join(first_run_lines(first))
    assert [text for text in expected if text not in report] == [], why
