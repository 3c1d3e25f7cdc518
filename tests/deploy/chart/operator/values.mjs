// Reads a JSON list of manifests from standard input. Prints one line for each value that the schemas of the Prometheus
// operator do not allow. Unknown fields are not checked here.
import { readFileSync } from "node:fs";
import { PrometheusRule, ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import { AlertmanagerConfig } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1alpha1";

const kinds = { PrometheusRule, ServiceMonitor, AlertmanagerConfig };
for (const manifest of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    new kinds[manifest.kind](manifest).validate();
  } catch (refused) {
    console.log(`${manifest.kind}: ${refused.message}`);
  }
}
