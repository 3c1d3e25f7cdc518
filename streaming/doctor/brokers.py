"""Findings about the brokers of a cluster: their advertised addresses and their clocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from streaming.doctor.finding import Finding, failed, not_checked, note, ok
from streaming.evaluation.lag.broker_clocks import WARN_MS, ClockOffset

BROKERS = "brokers"
CLOCKS = "clocks"


def broker_findings(addresses: Mapping[int, str], errors: Mapping[int, str], kafka_version: str) -> Iterator[Finding]:
    """Return one finding about all brokers that answer, and one finding about each broker that does not answer.

    The keys of `addresses` and `errors` are broker ids. `addresses` contains the advertised addresses.
    """
    answering = [f"{broker} at {address}" for broker, address in addresses.items() if broker not in errors]
    if answering:
        yield ok(BROKERS, f"{len(answering)} of {len(addresses)} answer, Kafka {kafka_version}: {', '.join(answering)}")
    for broker, error in errors.items():
        yield failed(
            BROKERS,
            f"broker {broker} advertises the address {addresses[broker]}, but does not answer at this address"
            f" ({error})",
            f"check advertised.listeners of broker {broker}, and DNS and firewalls between this machine and the broker",
        )


@dataclass(frozen=True, slots=True)
class MeasuredClocks:
    """The clock offsets of the brokers that lead a `__consumer_offsets` partition.

    `leaders` contains the ids of the brokers that lead a partition. `unanswered` contains the ids of brokers that did
    not answer a request. `seconds` is the duration of the measurement.
    """

    offsets: Mapping[int, ClockOffset]
    leaders: Collection[int]
    unanswered: Collection[int]
    seconds: float


def clock_findings(clocks: MeasuredClocks) -> Iterator[Finding]:
    """Return one finding about the clock of each broker in `leaders`.

    A clock offset is unknown if the broker wrote too few records, or if the broker did not answer.
    """
    for broker in sorted(clocks.leaders):
        point, offset = f"{CLOCKS}, broker {broker}", clocks.offsets.get(broker)
        if offset is None and broker in clocks.unanswered:
            yield not_checked(point, f"broker {broker} did not answer")
        elif offset is None:
            reason = f"too few commits on broker {broker} in {clocks.seconds:.0f} s"
            yield not_checked(point, reason, f"run the command again while groups on broker {broker} commit")
        elif offset.least_ms > WARN_MS:
            side = "ahead of" if offset.middle_ms > 0 else "behind"
            size = f"{abs(offset.middle_ms) / 1000:.1f} s (+/- {offset.within_ms / 1000:.1f} s)"
            remedy = "synchronize the clocks with NTP. Until then, the monitor corrects its times for the difference"
            yield note(point, f"{size} {side} the clock of this machine", remedy)
        else:
            at_most = max(abs(offset.lowest_ms), abs(offset.highest_ms)) / 1000
            yield ok(point, f"differs from the clock of this machine by at most {at_most:.1f} s")
