"""Tests of the one-line reason of a failure, from a long message of Java and Python."""

from __future__ import annotations

import doctest

import pytest
from py4j.protocol import Py4JError

from streaming import errors
from streaming.spark import causes, checksums, folder, state_files
from streaming.spark.causes import is_spark_gone, plain_cause, plain_reason

FOREACH_BATCH = """[STREAM_FAILED] Query [id = 1-a, runId = 2-b] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. \
Reason: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/opt/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
OSError: [Errno 28] No space left on device

	at py4j.Protocol.getReturnValue(Protocol.java:476) SQLSTATE: 39000
=== Streaming Query ===
"""
JOB_FAILED = """An error occurred while calling o95.load.
: org.apache.spark.SparkException: Job aborted due to stage failure
	at org.apache.spark.scheduler.DAGScheduler.x(DAGScheduler.scala:1)
Caused by: java.io.IOException: outer
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/query/state/0/0/3.changelog at 0
	... 3 more
"""


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (FOREACH_BATCH, "OSError: [Errno 28] No space left on device"),
        (JOB_FAILED, "ChecksumException: Checksum error: file:/c/query/state/0/0/3.changelog at 0"),
        ("[STREAM_FAILED] Query [id = 1] terminated with exception: Failed to read log file. SQLSTATE: XXKST",
         "Failed to read log file."),
        ("Generic error\n  \x1b[31m↳\x1b[0m Unable to copy\n   \x1b[31m↳\x1b[0m No space left on device",
         "No space left on device"),
        ("disk full", "disk full"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_innermost_reason_is_one_line(message: str, reason: str) -> None:
    """The log once showed a line that ended in "Traceback (most recent call last):"."""
    assert plain_reason(message) == reason


class GoneError(Py4JError):
    """An error from a JVM that was killed."""

    def __str__(self) -> str:
        """Raise an error, as Py4J does."""
        raise Py4JError("connection refused")


def test_an_error_from_a_killed_jvm_is_reported_as_a_lost_spark() -> None:
    """After a start with a damaged file, the log showed only `<exception str() failed>`."""
    assert plain_cause(GoneError()) == "Spark's JVM does not answer"
    assert plain_cause(KeyError()) == "KeyError"


def test_a_call_that_a_killed_jvm_did_not_answer_is_reported_as_a_lost_spark() -> None:
    """After `kill -9` of the JVM, the log showed a failed poll: "An error occurred while calling ..."."""
    call = "An error occurred while calling None.org.apache.hadoop.fs.Path"
    assert is_spark_gone(Py4JError(call))
    assert not is_spark_gone(Py4JError(f"{call}.\n: java.lang.IllegalArgumentException: x"))
    assert not is_spark_gone(Py4JError("org.apache.hadoop.fs.Path does not exist in the JVM"))


@pytest.mark.parametrize(
    "trace",
    [
        "Caused by: java.io.IOException: Stream closed\n\tat java.lang.ProcessBuilder$NullOutputStream.write(",
        "SparkException: Python worker exited unexpectedly (crashed).\nCaused by: java.io.EOFException\n\tat java.io.",
    ],
)
def test_a_killed_python_worker_is_named(trace: str) -> None:
    """After `kill -9` of the daemon and its workers, the log showed only "IOException: Stream closed"."""
    text = f"An error occurred while calling o1.count.\n: org.apache.spark.SparkException: Job aborted\n{trace}\n"
    assert plain_reason(text) == "a Python worker of Spark ended (killed, or too little memory)"


@pytest.mark.parametrize("module", [causes, checksums, folder, state_files, errors])
def test_the_examples_in_the_docstrings_are_correct(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
