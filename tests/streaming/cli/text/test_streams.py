"""Test the error of every command if standard output cannot be written or standard input is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCENARIO = {"strategy": "range", "partitions": {"t": 9}, "members": [{"member_id": "m", "topics": ["t"]}]}
FULL = "standard output cannot be written (No space left on device): redirect it to a different file"
CLOSED = "standard output cannot be written (it is closed): redirect it to a different file"


def run(arguments: str, lines: int = 1) -> subprocess.CompletedProcess[str]:
    """Run the command with a shell, as a user does. Each line of standard input is a scenario."""
    command = f"{sys.executable} -m streaming.cli {arguments}"
    text = (json.dumps(SCENARIO) + "\n") * lines
    return subprocess.run(["sh", "-c", command], input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ("assign > /dev/full", FULL, "click writes the output"),
        ("compare - > /dev/full", FULL, "rich writes the output"),
        ("decode > /dev/full", FULL, "the command writes bytes"),
        ("--help >&-", CLOSED, "click prints nothing if standard output is closed"),
        ("compare - >&-", CLOSED, "the command asked the closed output for its width"),
        ("config check >&-", CLOSED, "the command printed nothing, and the exit code was 0"),
        ("assign <&-", "standard input is closed: specify a file", "the command reads lines"),
        ("assign /proc/self/mem", "/proc/self/mem cannot be read (Input/output error): check the file", "a bad disk"),
        ("decode /proc/self/mem", "/proc/self/mem cannot be read (Input/output error): check the file", "a bad disk"),
        ("compare - <&-", "standard input is closed: specify a file", "the command reads the whole input"),
    ],
)
def test_a_stream_that_cannot_be_used_is_one_line(arguments: str, error: str, why: str) -> None:
    """A full disk ended all commands with a traceback."""
    ended = run(arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"Error: {error}\n"), why


def test_the_error_of_a_long_output_is_reported_once() -> None:
    """The buffer of standard output contains the rest of the output when the process ends."""
    assert run("decode > /dev/full", lines=2_000).stderr == f"Error: {FULL}\n"


def test_a_reader_that_stops_early_is_no_error() -> None:
    """For example `decode | head`."""
    ended = run("decode | head -n 1", lines=20_000)
    assert (len(ended.stdout.splitlines()), ended.stderr) == (1, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "ascii:strict", "ascii:surrogateescape"])
def test_a_name_without_a_code_in_the_encoding_of_the_output_is_shown_with_an_escape_sequence(encoding: str) -> None:
    """One group with an emoji in its name ended `groups` with UnicodeEncodeError, and no group was listed.

    With `LC_ALL=C`, Python uses `surrogateescape`, which also has no code for an emoji.
    """
    code = "from streaming.cli.text.streams import replace_streams; replace_streams(); print('{}')"
    command = [sys.executable, "-c", code.format(r"\U0001f600")]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ended = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"\\U0001f600\n", b"")
