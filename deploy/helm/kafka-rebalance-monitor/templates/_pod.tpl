{{- /* Parts of a pod that a Deployment, a driver and an executor have in common. */ -}}
{{- define "monitor.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "monitor.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* A new pod starts when this annotation changes, because the monitor reads its configuration only at its start. */ -}}
{{- define "monitor.podAnnotations" -}}
checksum/configuration: {{ include "monitor.settings" . | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "monitor.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* These variables contain only file names. The monitor uses a renewed certificate without a restart. */ -}}
{{- define "monitor.environment" -}}
{{- if or .Values.port.tlsSecret .Values.port.usersSecret .Values.env }}
env:
  {{- if .Values.port.tlsSecret }}
  - name: REBALANCE_MONITOR_METRICS__TLS_CERTIFICATE_FILE
    value: /etc/rebalance-monitor-tls/tls.crt
  - name: REBALANCE_MONITOR_METRICS__TLS_KEY_FILE
    value: /etc/rebalance-monitor-tls/tls.key
  {{- end }}
  {{- if .Values.port.usersSecret }}
  - name: REBALANCE_MONITOR_METRICS__BASIC_AUTH_USERS_FILE
    value: /etc/rebalance-monitor-users/users
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Folders that the monitor's process needs: the pod's container, or the driver. */ -}}
{{- define "monitor.volumeMounts" -}}
{{ include "monitor.commonVolumeMounts" . }}
- name: configuration
  mountPath: /etc/rebalance-monitor
  readOnly: true
{{- if .Values.port.tlsSecret }}
- name: tls
  mountPath: /etc/rebalance-monitor-tls
  readOnly: true
{{- end }}
{{- if .Values.port.usersSecret }}
- name: users
  mountPath: /etc/rebalance-monitor-users
  readOnly: true
{{- end }}
{{- end }}

{{- /* Folders that an executor needs, too. Only the process with the port needs the key and the users. */ -}}
{{- define "monitor.commonVolumeMounts" -}}
{{- if .Values.persistence.enabled }}
- name: state
  mountPath: /var/lib/kafka-rebalance-monitor
{{- end }}
- name: tmp
  mountPath: /tmp
{{- range $number, $name := .Values.secrets }}
- name: secret-{{ $number }}
  mountPath: /etc/rebalance-monitor-secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}

{{- /* Passwords and keys are files, because `kubectl describe` shows environment variables. With Kubernetes' default mode
0644, every process in the container could read them, and the monitor would log a warning. */ -}}
{{- define "monitor.volumes" -}}
{{- if .Values.persistence.enabled }}
- name: state
  persistentVolumeClaim:
    claimName: {{ include "monitor.claim" . }}
{{- end }}
# Spark's scratch space, and the working copy of its state.
- name: tmp
  emptyDir:
    sizeLimit: 4Gi
- name: configuration
  configMap:
    name: {{ .Release.Name }}
{{- range $number, $name := .Values.secrets }}
- name: secret-{{ $number }}
  secret:
    secretName: {{ $name }}
    defaultMode: 0440
{{- end }}
{{- with .Values.port.tlsSecret }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- with .Values.port.usersSecret }}
- name: users
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
