"""One process may watch several clusters: a line that is about one of them begins with its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

STREAMING = Path(__file__).parents[2] / "streaming"
OF_ALL = {
    "the maintenance of the tables failed (%s); trying again in %g s": "the tables are shared",
    "passwords for the HTTP port are sent unencrypted: set metrics.tls_certificate_file": "so is the port",
    "metrics at %s://%s:%d/metrics, pages at /": "so is the port",
    "the certificate of the HTTP port was renewed": "so is the port",
    "the renewed certificate cannot be used, the old one stays in use: %s": "so is the port",
    "a request on the HTTP port failed": "so is the port",
    "a connection to the HTTP port failed": "so is the port",
    "a connection to the HTTP port failed: %s": "so is the port",
    "every user of this machine can read %s: mount it with mode 0440": "so are files with secrets",
    "%d rows appended to %s in %.1f ms": "the tables are shared",
    "could not write a checkpoint of table %s: %s": "the tables are shared",
    "added columns to table %s: %s": "the tables are shared",
    "removed %d damaged files that are not needed from %s: %s": "a checkpoint's folder is one cluster's",
    "the maintenance of the tables took %.1f s": "the tables are shared",
    "stopped": "the whole process",
}
"""Lines about what all clusters share, and why."""


def log_calls(source: str) -> Iterator[tuple[str, str]]:
    """What is said, and the expression of the first value put into it.

    >>> list(log_calls("_log.log(level, '%s: ready', self._cluster)"))
    [('%s: ready', 'self._cluster')]
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("_log."):
            words, *values = node.args[1:] if ast.unparse(node.func) == "_log.log" else node.args
            yield ast.literal_eval(words), ast.unparse(values[0]) if values else ""


def names_its_cluster(said: str, first_value: str) -> bool:
    """Whether a line begins with a cluster's name."""
    return said.startswith(("%s: ", "%s ")) and first_value.rpartition(".")[2].strip("_") == "cluster"


LINES = [
    (file.relative_to(STREAMING).as_posix(), said, first_value)
    for file in sorted(STREAMING.rglob("*.py"))
    for said, first_value in log_calls(file.read_text())
]


@pytest.mark.parametrize(("file", "said", "first_value"), LINES)
def test_a_line_says_which_cluster_it_is_about(file: str, said: str, first_value: str):
    """Topics, groups and partitions of two clusters have the same names."""
    assert names_its_cluster(said, first_value) or said in OF_ALL, f"{file} says {said!r} of whichever cluster"


def test_every_line_about_all_clusters_is_still_said():
    assert OF_ALL.keys() <= {said for _, said, _ in LINES}


@pytest.mark.parametrize(
    ("call", "is_named"),
    [
        ('_log.warning("%s: brokers do not answer", self._cluster)', True),
        ('_log.error("%s cannot be watched", watch.cluster)', True),
        ('_log.log(level, "%s: waiting", self.cluster)', True),
        ('_log.warning("offsets of topic %s are unknown", topic)', False),
        ('_log.warning("%s: no such topic", topic)', False),
        ('_log.debug("stack trace of the failure:", exc_info=failure)', False),
    ],
)
def test_the_check_tells_named_lines_from_others(call: str, is_named: bool):
    (line,) = log_calls(call)
    assert names_its_cluster(*line) is is_named
