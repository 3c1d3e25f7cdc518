"""Tests that each command in a document is run by a named test, or is marked as not run in the document itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    str(file.relative_to(ROOT))
    for file in (
        ROOT / "README.md",
        *sorted((ROOT / "deploy").glob("*.md")),
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "dashboards" / "README.md",
    )
]
NOT_RUN = "Not run here"
WHOLE_PAGE = "**No cluster of these systems was available, so nothing on this page was run.**"
PROGRAMS = frozenset(
    [
        "amtool",
        "apt-get",
        "cat",
        "cd",
        "chmod",
        "confluent",
        "cp",
        "curl",
        "docker",
        "doctor",
        "helm",
        "htpasswd",
        "install",
        "journalctl",
        "jq",
        "kubectl",
        "make",
        "oc",
        "openssl",
        "pip",
        "promtool",
        "python",
        "python3",
        "rebalance-monitor",
        "rebuild",
        "rm",
        "rpk",
        "sed",
        "spark-submit",
        "ssh",
        "su",
        "sudo",
        "systemctl",
        "umask",
        "useradd",
        "userdel",
    ]
)
"""Programs that start a command in running text. In a block of code, each line is a command."""

OUTPUT = ("ok  ", "[", '"', "#")
"""What starts a line in a block of code that is no command: an output that the page shows, or TOML."""

_RELEASE = "tests/release_check.py::"
_SERVER = "tests/deploy/test_server.py::test_an_engineer_who_follows_the_page_gets_a_test_alert"
_DOCTOR = "tests/end_to_end/test_paging.py::test_doctor_finds_scrape_rules_and_alertmanager_and_its_test_alerts_arrive"
_REBUILD = (
    "tests/end_to_end/test_survives_kills.py"
    "::test_after_five_kills_and_a_rebuild_nothing_is_lost_or_written_twice_and_no_ghost_stays"
)
_LIMITS = "tests/streaming/config/test_groups.py::test_config_check_shows_each_limit_of_a_group_and_its_source"
_COMPOSE = (
    "tests/deploy/test_compose.py::test_the_commands_of_the_page_select_the_receivers_and_give_the_secrets_to_the_users"
)

RUN: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "python3 -m venv ~/monitor": f"{_RELEASE}_install_into",
        "~/monitor/bin/pip install": f"{_RELEASE}_install_into",
        "~/monitor/bin/rebalance-monitor demo": f"{_RELEASE}demo",
        "rebalance-monitor config check": _LIMITS,
        "rebalance-monitor doctor": _DOCTOR,
        "rebalance-monitor run": f"{_RELEASE}watch",
        "rebalance-monitor rebuild": _REBUILD,
        "rebuild --repair-tables": "tests/streaming/run/test_rebuild.py"
        "::test_damaged_tables_are_refused_before_anything_moves_and_repaired_on_request",
        ".venv/bin/": "tests/test_readme.py::test_the_commands_that_read_a_table_work",
    },
    "dashboards/README.md": {
        "python -m dashboards": "tests/dashboards/test_rules.py"
        "::test_there_are_29_alerts_and_the_committed_files_are_those_of_the_generator",
        ".venv/bin/python -m dashboards": "tests/dashboards/test_rules.py"
        "::test_there_are_29_alerts_and_the_committed_files_are_those_of_the_generator",
        "make setup": "tests/deploy/test_setup.py::test_without_a_supported_python_the_error_names_the_versions",
    },
    "deploy/COMPOSE.md": {
        "cd deploy/compose": _COMPOSE,
        "cp ": _COMPOSE,
        "sudo install ": _COMPOSE,
        "sed -i ": _COMPOSE,
    },
    "deploy/KUBERNETES.md": {
        "jq ": "tests/deploy/test_rebuild_job.py"
        "::test_with_the_spark_operator_rebuild_runs_once_with_the_driver_of_the_monitor",
    },
    "deploy/README.md": {
        "spark-submit ": "tests/end_to_end/test_spark_submit.py"
        "::test_two_workers_of_a_spark_master_write_the_same_rows_as_one_machine",
        "rebalance-monitor doctor": _DOCTOR,
        "doctor --send-test-alert": _DOCTOR,
        "python3 -m venv ~/monitor": f"{_RELEASE}_install_into",
        "~/monitor/bin/rebalance-monitor jars --to": f"{_RELEASE}_run_steps",
        "~/monitor/bin/rebalance-monitor jars --from": f"{_RELEASE}_run_offline",
    },
    "deploy/SERVER.md": dict.fromkeys(
        (
            "umask ",
            "python3 -m venv ",
            "useradd ",
            "install ",
            "su ",
            "sed ",
            "promtool ",
            "amtool ",
            "rm ",
            "userdel ",
        ),
        _SERVER,
    ),
    "docs/LIMITS.md": {"rebalance-monitor config check --group": _LIMITS},
    "docs/SCALING.md": {
        "make bench": "tests/bench/test_run.py::test_a_small_fill_is_read_and_its_figures_agree_with_each_other",
    },
    "docs/SECURITY.md": {
        "rebalance-monitor doctor": "tests/end_to_end/test_security.py"
        "::test_doctor_prints_commands_that_grant_exactly_what_is_missing",
        "rebalance-monitor run": "tests/end_to_end/test_security.py"
        "::test_the_minimal_permissions_are_enough_and_no_output_has_a_secret",
    },
    "docs/TABLES.md": {
        "python -m tests.table_reference": "tests/test_readme.py::test_the_table_reference_agrees_with_the_schemas",
    },
    "docs/UPGRADING.md": {"rebalance-monitor rebuild": _REBUILD},
}
"""The start of each command that is run, and the test or the function of the release check that runs it."""


def commands(text: str) -> Iterator[str]:
    """Yield each command of a document, outside of the sections that list what was tested."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    for section in sections:
        if not section.startswith((NOT_RUN, "What was tested")):
            yield from _commands_in(section.splitlines())


def _commands_in(lines: list[str]) -> Iterator[str]:
    language, previous, is_code, unfinished = None, "", False, ""
    for line in lines:
        if fence := re.match(r"\s*```(\w*)", line):
            language = fence[1] if language is None else None
            continue
        is_code = bool(line.startswith("    ") and (is_code or not previous.strip()))
        previous = line
        if language in {"bash", "sh"} or (language is None and is_code):
            unfinished = f"{unfinished}{line.strip()}\n"
            if unfinished.count("'") % 2 == 0 and not line.endswith("\\"):
                if not unfinished.startswith(OUTPUT):
                    yield unfinished.strip()
                unfinished = ""
        elif language is None:
            yield from filter(_is_command, re.findall(r"`([^`]+)`", line))


def _is_command(code: str) -> bool:
    program, _, arguments = code.partition(" ")
    return bool(arguments) and program.rpartition("/")[2] in PROGRAMS


def not_run(text: str) -> tuple[str, ...]:
    """Return the start of each command that the document marks as not run: in a sentence, or in a row of a table."""
    if WHOLE_PAGE in text:
        return ("",)
    section = text.partition(f"## {NOT_RUN}\n")[2].partition("\n## ")[0].splitlines()
    sentences = " ".join(line for line in section if not line.startswith("|")).split(". ")
    rows = [line.split("|")[1] for line in section if line.startswith("|")]
    marked = [sentence for sentence in sentences if re.search("not run|No test runs|none of|except", sentence)]
    return tuple(code for part in (*marked, *rows) for code in re.findall(r"`([^`]+)`", part))


def test_commands_are_found_in_blocks_and_in_sentences():
    """A check that finds nothing would be useless."""
    block = "Run `cp a b` or `cp`.\n\n    docker run \\\n        image\n"
    fences = "```bash\njq '{\n a\n}' x\n```\n```yaml\na: b\n```\n"
    assert list(commands(block + fences)) == ["cp a b", "docker run \\\nimage", "jq '{\na\n}' x"]
    assert list(commands("1. A sentence\n    that continues.\n\n    ok           a line of output\n")) == []


def test_a_command_is_not_run_if_a_sentence_or_a_row_of_a_table_marks_it():
    section = (
        f"## {NOT_RUN}\n\nNo test runs `cp`. A test runs `jq`.\n\n| command |\n|---|\n| `ssh` | by `hand` |\n## More\n"
    )
    assert not_run(section) == ("cp", "ssh")
    assert not_run("## More\nNo test runs `cp`") == ()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_command_is_run_in_a_named_test_or_is_marked_as_not_run(document: str):
    """Add the command to RUN, with the test that runs it, or to the section "Not run here" of the document."""
    text, run = (ROOT / document).read_text(), RUN.get(document, {})
    known = (*run, *not_run(text))
    assert [command for command in commands(text) if not command.startswith(known)] == []
    unused = [start for start in run if not any(command.startswith(start) for command in commands(text))]
    assert unused == [], "the document no longer has these commands"


@pytest.mark.parametrize("test", sorted({test for run in RUN.values() for test in run.values()}))
def test_each_test_in_the_list_exists(test: str):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_each_command_for_kubernetes_names_its_namespace(document: str):
    """Without it, `kubectl scale` changes a Deployment in the namespace of the user. The manifests have a namespace."""
    without = ("kubectl create namespace ", "kubectl label namespace ", "kubectl apply ")
    for command in commands((ROOT / document).read_text()):
        for line in re.findall(r"(?:kubectl|helm) [^|\n]*", command):
            if " " in line.strip().partition(" ")[2] and not line.startswith(without):
                assert "--namespace " in line, line
