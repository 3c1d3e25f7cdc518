"""Read the parts and the commands of the runbook, and run commands as they are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from tests.dashboards.rules import RUNBOOK

_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_HEADING = re.compile(r"^### (.+)\n", re.MULTILINE)
_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
_IN_SENTENCE = re.compile(r"`([^`]+)`")
_KAFKA_TOOL = re.compile(r"\bkafka-[a-z-]+\.sh ")
_COMMAND_SECONDS = 120


def introduction() -> dict[str, str]:
    """Return the texts before the first section, by their headings."""
    _, *parts = _HEADING.split(_SECTION.split(RUNBOOK.read_text())[0])
    return dict(zip(parts[::2], parts[1::2], strict=True))


def sections() -> dict[str, str]:
    """Return the text of each section, by the name of its alert."""
    _, *parts = _SECTION.split(RUNBOOK.read_text())
    return dict(zip(parts[::2], parts[1::2], strict=True))


def preparation(heading: str = "Variables") -> str:
    """Return the block of commands below a heading of the introduction."""
    (block,) = _BLOCK.findall(introduction()[heading])
    return str(block)


def blocks(section: str) -> list[str]:
    """Return the blocks of commands in the text of a section."""
    return _BLOCK.findall(section)


def commands_of(section: str) -> list[str]:
    """Return every command in the text of a section, also those within sentences, once, in order.

    In a sentence, a command has at least two words.
    """
    commands = []
    for part in re.split(r"(```bash\n.*?```)", section, flags=re.DOTALL):
        if block := _BLOCK.match(part):
            commands += block[1].splitlines()
        else:
            commands += [" ".join(code.split()) for code in _IN_SENTENCE.findall(part) if _is_command(code)]
    return list(dict.fromkeys(commands))


def _is_command(code: str) -> bool:
    return bool(
        re.match(r"(kafka-[a-z-]+\.sh|rebalance-monitor|systemctl|kubectl|curl|group|metrics|overview)\s", code)
    )


def commands_of_blocks() -> list[str]:
    """Return every line of a block in a section, once, in order."""
    lines = (line for section in sections().values() for block in blocks(section) for line in block.splitlines())
    return list(dict.fromkeys(lines))


def commands_with_kafkas_tools() -> list[str]:
    """Return every command with one of Kafka's tools, also those within sentences, once, in order."""
    commands = (command for section in sections().values() for command in commands_of(section))
    return [command for command in dict.fromkeys(commands) if _KAFKA_TOOL.search(command)]


def run_in_shell(
    command: str, variables: Mapping[str, str], environment: Mapping[str, str], further_preparation: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command of the runbook with these variables, after the runbook's preparation. An unset variable fails."""
    exports = "\n".join(f"export {name}='{value}'" for name, value in variables.items())
    script = f"set -uo pipefail\n{preparation()}\n{exports}\n{further_preparation}\n{command}"
    return subprocess.run(
        ["bash", "-c", script],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_SECONDS,
    )
