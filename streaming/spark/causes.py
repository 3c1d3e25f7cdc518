"""Find the innermost cause in a long error text of Java, Spark or a Python worker. Return the cause as one line.

1. In a Java stack trace, the cause is the text after the last `Caused by:`.
2. In a Python traceback inside a Java stack trace, the cause is the first unindented line after `Traceback`. The line
   contains the name of the exception.
3. In a text of Py4J, the cause is the second line.
4. In a text of delta-rs, the cause is the last line that starts with an arrow.
5. In other texts, the cause is the first line. Java package names and Spark error codes are removed from the cause.
6. If a Python worker was killed, Spark's text ends with an error of a stream. One of two phrases in the text shows this
   case.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JNetworkError

_PYTHON_TRACE = "Traceback (most recent call last):"
_JAVA_PACKAGE = re.compile(r"\b(?:[a-z_][a-z0-9_]*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
_PREFIX = re.compile(r"^(?:\[[A-Z_.]+\] )?(?:Query \[[^\]]*\] terminated with exception: )?(?:\[[A-Z_.]+\] )?")
_SUFFIX = re.compile(r"\s*SQLSTATE: \w+\s*$")
_WORKER_ENDED = re.compile(r"Python worker exited unexpectedly|ProcessBuilder\$NullOutputStream")
_CALL_WITHOUT_ANSWER = re.compile(r"An error occurred while calling \S+")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 300


def plain_cause(error: BaseException) -> str:
    """Return the cause of an error, as one line of text."""
    return "Spark's JVM does not answer" if is_spark_gone(error) else plain_reason(str(error)) or type(error).__name__


def is_spark_gone(error: BaseException) -> bool:
    """Return True if the JVM no longer answers. Without the JVM, even the text of a Java error is not available.

    If the JVM ends during a call, the text of Py4J contains only the call, and no Java exception.
    """
    try:
        text = str(error)
    except (Py4JError, OSError):
        return True
    is_unanswered = isinstance(error, Py4JError) and _CALL_WITHOUT_ANSWER.fullmatch(text) is not None
    return is_unanswered or isinstance(error, Py4JNetworkError | ConnectionError)


def plain_reason(text: str) -> str:
    r"""Return the innermost cause in an error text.

    >>> plain_reason("An error occurred while calling o17.load.\n: java.io.IOException: No space left\n\tat X.java:12")
    'IOException: No space left'
    >>> plain_reason("[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):\n"
    ...     '  File "batches.py", line 71\nOSError: disk full\n')
    'OSError: disk full'
    """
    if _WORKER_ENDED.search(text):
        return "a Python worker of Spark ended (killed, or too little memory)"
    lines = [line for line in _COLOURS.sub("", text).splitlines() if line.strip()]
    arrows = [line.partition("↳")[2].strip() for line in lines if line.lstrip().startswith("↳")]
    causes = [line.partition("Caused by: ")[2] for line in lines if line.lstrip().startswith("Caused by: ")]
    traces = [at for at, line in enumerate(lines) if _PYTHON_TRACE in line]
    if traces:
        after = [line for line in lines[traces[-1] + 1 :] if not line[:1].isspace()]
        reason = after[0] if after else ""
    elif arrows:
        reason = arrows[-1]
    elif causes:
        reason = causes[-1]
    elif len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        reason = lines[1].removeprefix(": ")
    else:
        reason = lines[0] if lines else ""
    return _SUFFIX.sub("", _JAVA_PACKAGE.sub("", _PREFIX.sub("", reason)))[:_LONGEST].strip()
