"""What the runbook has somebody type, and somebody who types it as it stands."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from tests.dashboards.rules import RUNBOOK

_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
_IN_SENTENCE = re.compile(r"`([^`]+)`")
_KAFKA_TOOL = re.compile(r"\bkafka-[a-z-]+\.sh ")
_TYPED_SECONDS = 120


def commands_of_blocks() -> list[str]:
    """Every line that stands below **Confirm**, once, in order."""
    _, *blocks = _BLOCK.findall(RUNBOOK.read_text())
    return list(dict.fromkeys(line for block in blocks for line in block.splitlines()))


def commands_with_kafkas_tools() -> list[str]:
    """Every command with one of Kafka's own tools, those within sentences too, once, in order."""
    sentences = _BLOCK.sub("", RUNBOOK.read_text())
    within = [" ".join(code.split()) for code in _IN_SENTENCE.findall(sentences)]
    return [line for line in dict.fromkeys([*commands_of_blocks(), *within]) if _KAFKA_TOOL.search(line)]


def typed(
    command: str, variables: Mapping[str, str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command after what the runbook has everybody set once, the variables set to ours; an unset one fails."""
    preparation = _BLOCK.findall(RUNBOOK.read_text())[0]
    ours = "\n".join(f"export {name}='{value}'" for name, value in variables.items())
    script = f"set -uo pipefail\n{preparation}\n{ours}\n{command}"
    return subprocess.run(
        ["bash", "-c", script],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_TYPED_SECONDS,
    )
