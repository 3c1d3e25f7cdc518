"""Read the commands of the runbook, and run them as they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from tests.dashboards.rules import RUNBOOK

_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
_IN_SENTENCE = re.compile(r"`([^`]+)`")
_KAFKA_TOOL = re.compile(r"\bkafka-[a-z-]+\.sh ")
_COMMAND_SECONDS = 120


def commands_of_blocks() -> list[str]:
    """Return every line below **Confirm**, once, in order."""
    _, *blocks = _BLOCK.findall(RUNBOOK.read_text())
    return list(dict.fromkeys(line for block in blocks for line in block.splitlines()))


def commands_with_kafkas_tools() -> list[str]:
    """Return every command with one of Kafka's tools, also those within sentences, once, in order."""
    sentences = _BLOCK.sub("", RUNBOOK.read_text())
    within = [" ".join(code.split()) for code in _IN_SENTENCE.findall(sentences)]
    return [line for line in dict.fromkeys([*commands_of_blocks(), *within]) if _KAFKA_TOOL.search(line)]


def run_in_shell(
    command: str, variables: Mapping[str, str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command of the runbook with these variables, after the runbook's preparation. An unset variable fails."""
    preparation = _BLOCK.findall(RUNBOOK.read_text())[0]
    exports = "\n".join(f"export {name}='{value}'" for name, value in variables.items())
    script = f"set -uo pipefail\n{preparation}\n{exports}\n{command}"
    return subprocess.run(
        ["bash", "-c", script],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_SECONDS,
    )
