"""The one connection: questions of one's own to brokers of one's choice."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka.errors import KafkaError, UnknownBrokerIdError
from kafka.protocol.admin import ListGroupsRequest

from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.sampling.connection import BrokerUnreachableError, Connection


def test_a_cluster_that_does_not_answer_is_one_line_with_the_remedy():
    """On-call reads the first line."""
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}", connect_timeout_seconds=0.3)
    with pytest.raises(
        BrokerUnreachableError, match=r"no broker at 127\.0\.0\.1:\d+ answered within 0\.3 s"
    ) as refused:
        Connection(kafka, 1)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_many_questions_are_answered_each_at_its_place_and_a_missing_broker_spoils_only_its_own(broker: EmbeddedBroker):
    """The client refuses more than five requests under way on a connection: the rest must wait, not fail."""
    with closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connection:
        [broker_id] = connection.broker_ids()
        versions = [version % 6 for version in range(20)]
        questions = [(broker_id, ListGroupsRequest(max_version=version)) for version in versions]
        *answers, missing = connection.ask_each([*questions, (broker_id + 1, ListGroupsRequest())])
    assert isinstance(missing, UnknownBrokerIdError)
    assert not any(isinstance(answer, KafkaError) for answer in answers)
    assert [answer.API_VERSION for answer in answers] == versions
