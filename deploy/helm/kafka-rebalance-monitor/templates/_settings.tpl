{{- /* The settings of the user, and the address of the pages if the chart knows it. */ -}}
{{- define "monitor.settings" -}}
{{- $settings := deepCopy .Values.settings }}
{{- if .Values.ingress.enabled }}
  {{- $scheme := ternary "https" "http" (ne .Values.ingress.tlsSecret "") }}
  {{- $links := dict "page_url" (printf "%s://%s" $scheme .Values.ingress.host) }}
  {{- $settings = merge $settings (dict "links" $links) }}
{{- end }}
{{- include "monitor.toml" (dict "table" $settings "path" "") }}
{{- end }}

{{- /*
Writes one table of TOML and the tables in it. The function toToml of Helm writes 4 as 4.0, because all numbers of YAML
are floating-point numbers there. A string, a number and a list in JSON are the same in TOML. A null is a missing key.
*/ -}}
{{- define "monitor.toml" -}}
{{- range $key, $value := .table }}
  {{- if not (or (kindIs "map" $value) (kindIs "invalid" $value) (include "monitor.isListOfTables" $value)) }}
{{ include "monitor.tomlKey" $key }} = {{ toJson $value }}
  {{- end }}
{{- end }}
{{- range $key, $value := .table }}
  {{- $path := printf "%s%s" $.path (include "monitor.tomlKey" $key) }}
  {{- if kindIs "map" $value }}
[{{ $path }}]
    {{- include "monitor.toml" (dict "table" $value "path" (printf "%s." $path)) }}
  {{- else if include "monitor.isListOfTables" $value }}
    {{- range $value }}
[[{{ $path }}]]
      {{- include "monitor.toml" (dict "table" . "path" (printf "%s." $path)) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "monitor.tomlKey" -}}
{{ if regexMatch "^[A-Za-z0-9_-]+$" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "monitor.isListOfTables" -}}
{{- if kindIs "slice" . }}{{ if . }}{{ if kindIs "map" (first .) }}true{{ end }}{{ end }}{{ end }}
{{- end }}
