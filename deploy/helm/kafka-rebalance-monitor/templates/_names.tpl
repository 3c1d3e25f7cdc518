{{- /* The name of most resources is the name of the release. */ -}}
{{- define "monitor.metadata" -}}
name: {{ .Release.Name }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "monitor.labels" . | nindent 2 }}
{{- end }}

{{- define "monitor.selector" -}}
app.kubernetes.io/name: rebalance-monitor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "monitor.labels" -}}
{{ include "monitor.selector" . }}
app.kubernetes.io/part-of: kafka-rebalance-monitor
{{- end }}

{{- /* Metadata of a resource that the Prometheus operator selects by labels. */ -}}
{{- define "monitor.operatorMetadata" -}}
{{ include "monitor.metadata" . }}
{{- with .Values.monitoring.labels }}
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "monitor.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "monitor.claim" -}}
{{ .Values.persistence.existingClaim | default .Release.Name }}
{{- end }}
