r"""Creates the queries that Grafana sends to Prometheus for a dashboard, with the values of variables.

1. `$name` is a variable. With one value, it is replaced by this value, with `\` and `'` escaped. If several values can
   be selected, it is replaced by a regular expression of all selected values, each escaped. If all are selected, it is
   replaced by the variable's `allValue` without a change.
2. `$__interval` is the step between two points in seconds. `$__range` is the time range in seconds. `$__rate_interval`
   is long enough for four scrapes: max(step + scrape interval, 4 * scrape interval).

Rule 1 is `interpolateQueryExpr` of Grafana's Prometheus plugin. Rule 2 is in Grafana's documentation of variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "dashboards" / "grafana"
_VARIABLE = re.compile(r"\$([a-z_]\w*)")
"""A name of a variable. `$1` in PromQL's `label_replace` is none: Grafana leaves an unknown variable as it is."""

Chosen = Mapping[str, "str | Sequence[str] | None"]
"""Selected values of each variable: one value, several values, or None for all."""


@dataclass(frozen=True)
class Times:
    """The time range, the step and the scrape interval of queries, in seconds."""

    range_seconds: int
    step_seconds: int
    scrape_seconds: int

    def variables(self) -> dict[str, str]:
        """Return the variables of rule 2."""
        rate = max(self.step_seconds + self.scrape_seconds, 4 * self.scrape_seconds)
        return {
            "__interval": f"{self.step_seconds}s",
            "__range": f"{self.range_seconds}s",
            "__rate_interval": f"{rate}s",
        }


@dataclass(frozen=True)
class PanelQuery:
    """One query of one panel, with its variables not yet replaced."""

    dashboard: str
    panel: str
    ref_id: str
    expression: str
    is_instant: bool


class Dashboard:
    """A dashboard from its file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())

    @property
    def panels(self) -> list[dict[str, Any]]:
        """Return all panels except rows, also those in collapsed rows."""
        in_rows = [panel for row in self.rows for panel in row["panels"]]
        return self.open_panels + in_rows

    @property
    def open_panels(self) -> list[dict[str, Any]]:
        """Return the panels that Grafana shows at first. It runs only their queries."""
        return [panel for panel in self.model["panels"] if panel["type"] != "row"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the titles of rows. A collapsed row contains its panels."""
        return [panel for panel in self.model["panels"] if panel["type"] == "row"]

    @property
    def query_panels(self) -> list[dict[str, Any]]:
        """Return the panels with queries: all panels except texts."""
        return [panel for panel in self.panels if panel["type"] != "text"]

    @property
    def variables(self) -> dict[str, dict[str, Any]]:
        """Return the variables by name."""
        return {variable["name"]: variable for variable in self.model["templating"].get("list", ())}

    def queries(self) -> Iterator[PanelQuery]:
        """Yield all queries of all panels and annotations."""
        for panel in self.query_panels:
            for target in panel["targets"]:
                is_instant = bool(target.get("instant"))
                yield PanelQuery(self.name, panel["title"], target["refId"], target["expr"], is_instant)
        for event in self.model["annotations"].get("list", ()):
            yield PanelQuery(self.name, f"event: {event['name']}", "", event["expr"], is_instant=False)

    def resolve_query(self, expression: str, chosen: Chosen, times: Times) -> str:
        """Return the query that Prometheus receives. Raises KeyError if the dashboard does not have a variable."""
        values = {name: self._value(name, value) for name, value in chosen.items()} | times.variables()
        return _VARIABLE.sub(lambda found: values[found[1]], expression)

    def _value(self, name: str, chosen: str | Sequence[str] | None) -> str:
        variable = self.variables[name]
        if chosen is None:
            return str(variable["allValue"])
        if not variable["multi"] and not variable["includeAll"]:
            assert isinstance(chosen, str)
            return chosen.replace("\\", "\\\\").replace("'", "\\\\'")
        escaped = [_escape(one) for one in ([chosen] if isinstance(chosen, str) else chosen)]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def _escape(value: str) -> str:
    return re.sub(r"[$^*{}\[\]'+?.()|]", lambda found: f"\\\\{found[0]}", value.replace("\\", "\\\\\\\\"))


def dashboards() -> list[Dashboard]:
    """Return all dashboards, ordered by name."""
    return [Dashboard(file.stem) for file in sorted(FOLDER.glob("*.json"))]
