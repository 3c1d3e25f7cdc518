"""Test the error of a Spark session that does not start. The test needs no Spark."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from streaming.errors import MAY_PASS, STAYS
from streaming.spark.session import start_error

CALL = "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n: "
MEMORY = CALL + "org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY] System memory 1"
TIME = CALL + "java.lang.NumberFormatException: Time must be specified as seconds (s)"


@pytest.mark.parametrize(
    ("error", "master", "exit_code", "message"),
    [
        (Py4JError(MEMORY), "local[2]", STAYS, "Spark did not start (SparkIllegalArgumentException: [INVALID"),
        (Py4JError(TIME), "local", STAYS, "Spark did not start (NumberFormatException: Time must be specified"),
        (Py4JError(TIME), "spark://a:7077", MAY_PASS, "Spark did not start (NumberFormatException"),
        (Py4JError(f"{CALL}java.io.IOException: No space"), "local", MAY_PASS, "Spark did not start (IOException"),
        (Py4JNetworkError("x"), "local", MAY_PASS, "Spark's Java process ended while the session started"),
    ],
)
def test_the_error_of_a_session_that_does_not_start_is_one_line_with_the_settings(
    error: Exception, master: str, exit_code: int, message: str
) -> None:
    """`run` ended with a traceback and code 1, for example with `spark.driver_memory = 256m`."""
    described = start_error(error, master)
    assert described.exit_code == exit_code
    assert str(described).startswith(message)
    assert str(described).endswith("check spark.master, spark.driver_memory and spark.conf")
    assert len(str(described).splitlines()) == 1
