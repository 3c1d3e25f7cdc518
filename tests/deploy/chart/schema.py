"""Write the part `settings` of the chart's values.schema.json: `python -m tests.deploy.chart.schema`.

The part comes from the monitor's own settings, so `helm install` refuses a misspelled setting. Passwords are not in the
schema, because the chart writes the settings into a ConfigMap, which is not secret. Their settings with `_file` are.
"""

from __future__ import annotations

import json
from typing import Any

from streaming.config.load import Settings
from tests.deploy.chart.paths import CHART

SCHEMA_FILE = CHART / "values.schema.json"
_NOT_FOR_VALUES = {"title", "default", "format", "writeOnly"}
"""Keywords that check nothing. A default can be a path of the machine that writes the schema."""


def values_schema() -> str:
    """Return the file with a new part `settings` and new definitions. The rest is edited in the file."""
    schema = json.loads(SCHEMA_FILE.read_text())
    settings = _for_values(Settings.model_json_schema())
    definitions = settings.pop("$defs")
    schema["properties"]["settings"] = {**settings, "required": ["paths"]}
    definitions["PathSettings"]["required"] = ["checkpoint", "tables"]
    schema["$defs"] = definitions
    return json.dumps(schema, indent=2) + "\n"


def _for_values(schema: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        return [_for_values(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    without_noise = {key: _for_values(value) for key, value in schema.items() if key not in _NOT_FOR_VALUES}
    if "properties" in schema:  # its keys are names of settings, not keywords
        properties = {name: one for name, one in schema["properties"].items() if not _is_secret(one)}
        without_noise["properties"] = {name: _for_values(one) for name, one in properties.items()}
    return without_noise


def _is_secret(setting: dict[str, Any]) -> bool:
    return any(choice.get("format") == "password" for choice in (setting, *setting.get("anyOf", ())))


if __name__ == "__main__":
    SCHEMA_FILE.write_text(values_schema())
