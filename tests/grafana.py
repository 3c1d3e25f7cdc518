r"""What Grafana makes of a dashboard before it asks Prometheus: which queries, and what stands in place of variables.

1. `$name` is a variable. Of one value that value, `\` and `'` escaped; where several can be chosen, a regular
   expression of all chosen, each escaped; where all are chosen, the variable's `allValue` as it is.
2. `$__interval` is the step between two points, `$__range` the time range, in seconds; `$__rate_interval` is long
   enough for four scrapes: max(step + scrape interval, 4 * scrape interval).

Rule 1 is `interpolateQueryExpr` of Grafana's Prometheus plugin, rule 2 is in its documentation of variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "dashboards" / "grafana"
_VARIABLE = re.compile(r"\$(\w+)")

Chosen = Mapping[str, "str | Sequence[str] | None"]
"""A value of each variable, or several, or None for all."""


@dataclass(frozen=True)
class Times:
    """The times that queries are asked for, in seconds."""

    range_seconds: int
    step_seconds: int
    scrape_seconds: int

    def variables(self) -> dict[str, str]:
        """Rule 2."""
        rate = max(self.step_seconds + self.scrape_seconds, 4 * self.scrape_seconds)
        return {
            "__interval": f"{self.step_seconds}s",
            "__range": f"{self.range_seconds}s",
            "__rate_interval": f"{rate}s",
        }


@dataclass(frozen=True)
class PanelQuery:
    """One query of one panel, variables still in it."""

    dashboard: str
    panel: str
    ref_id: str
    expression: str
    is_instant: bool


class Dashboard:
    """A dashboard as it lies in its file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())

    @property
    def panels(self) -> list[dict[str, Any]]:
        """All panels but the rows."""
        return [panel for panel in self.model["panels"] if panel["type"] != "row"]

    @property
    def asking(self) -> list[dict[str, Any]]:
        """Panels that ask Prometheus: all but texts."""
        return [panel for panel in self.panels if panel["type"] != "text"]

    @property
    def variables(self) -> dict[str, dict[str, Any]]:
        """By name."""
        return {variable["name"]: variable for variable in self.model["templating"].get("list", ())}

    def queries(self) -> Iterator[PanelQuery]:
        """Every query of every panel, and of the events drawn into them."""
        for panel in self.asking:
            for target in panel["targets"]:
                is_instant = bool(target.get("instant"))
                yield PanelQuery(self.name, panel["title"], target["refId"], target["expr"], is_instant)
        for event in self.model["annotations"].get("list", ()):
            yield PanelQuery(self.name, f"event: {event['name']}", "", event["expr"], is_instant=False)

    def asked(self, expression: str, chosen: Chosen, times: Times) -> str:
        """What Prometheus is asked. Fails where a variable is none of the dashboard's."""
        values = {name: self._value(name, value) for name, value in chosen.items()} | times.variables()
        return _VARIABLE.sub(lambda found: values[found[1]], expression)

    def _value(self, name: str, chosen: str | Sequence[str] | None) -> str:
        variable = self.variables[name]
        if chosen is None:
            return str(variable["allValue"])
        if not variable["multi"] and not variable["includeAll"]:
            assert isinstance(chosen, str)
            return chosen.replace("\\", "\\\\").replace("'", "\\\\'")
        escaped = [_escaped(one) for one in ([chosen] if isinstance(chosen, str) else chosen)]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _escaped(value: str) -> str:
    return re.sub(r"[$^*{}\[\]'+?.()|]", lambda found: f"\\\\{found[0]}", value.replace("\\", "\\\\\\\\"))


def dashboards() -> list[Dashboard]:
    """All of them, by name."""
    return [Dashboard(file.stem) for file in sorted(FOLDER.glob("*.json"))]
