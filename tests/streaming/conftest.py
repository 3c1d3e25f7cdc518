"""What the tests of `streaming` share: one real broker, started when the first test asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.embedded import EmbeddedBroker

# What is slow on a busy machine, or on the first call into Arrow, is not wrong.
settings.register_profile("no deadline", deadline=None, max_examples=EXAMPLES)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Give tests that only need some broker the one they share; their topics and groups have names of their own."""
    from streaming.embedded import EmbeddedBroker  # noqa: PLC0415 - the pure core's tests load no Kafka client

    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running
