// Reads a JSON list of manifests from standard input. Prints one line for each manifest with a field that the Go types of
// the Prometheus operator do not have. Patterns and allowed values are not checked here.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	v1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"sigs.k8s.io/yaml"
)

func main() {
	var manifests []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&manifests); err != nil {
		panic(err)
	}
	for _, manifest := range manifests {
		var kind struct{ Kind string }
		if err := json.Unmarshal(manifest, &kind); err != nil {
			panic(err)
		}
		into := map[string]any{
			"PrometheusRule":     &v1.PrometheusRule{},
			"ServiceMonitor":     &v1.ServiceMonitor{},
			"AlertmanagerConfig": &v1alpha1.AlertmanagerConfig{},
		}[kind.Kind]
		if err := yaml.UnmarshalStrict(manifest, into); err != nil {
			fmt.Printf("%s: %s\n", kind.Kind, err)
		}
	}
}
