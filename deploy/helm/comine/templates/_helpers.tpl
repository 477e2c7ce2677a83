{{/* What all parts of a release share. */}}

{{- define "comine.check" -}}
{{- $enabled := list }}
{{- range $part := list "node" "relay" "coordinator" }}
{{- if (get $.Values $part).enabled }}
{{- $enabled = append $enabled $part }}
{{- end }}
{{- end }}
{{- if ne (len $enabled) 1 }}
{{- fail "a release is a node, a relay or a coordinator: set one of node.enabled, relay.enabled and coordinator.enabled" }}
{{- end }}
{{- end -}}

{{- define "comine.name" -}}
{{- printf "%s-%s" .Release.Name .part | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "comine.selector" -}}
app.kubernetes.io/name: comine
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "comine.labels" -}}
{{ include "comine.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "comine.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ printf "%s@%s" .repository .digest }}
{{- else -}}
{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMap with the files: the one that is named, or the one made of `files`. */}}
{{- define "comine.files" -}}
{{- .values.configMap | default (include "comine.name" .) -}}
{{- end -}}

{{- define "comine.configmap" -}}
{{- if not .values.configMap }}
{{- $first := get (dict "node" "party.toml" "relay" "relay.toml" "coordinator" "job.toml") .part }}
{{- if not (hasKey .values.files $first) }}
{{- fail (printf "%s.configMap is needed, or %s in %s.files" .part $first .part) }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "comine.name" . }}
  labels: {{- include "comine.labels" . | nindent 4 }}
data:
  {{- toYaml .values.files | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Pods are nobody on the machine and in the cluster, and may do nothing but what they are for. */}}
{{- define "comine.pod" -}}
serviceAccountName: {{ .Values.serviceAccount.name | default (include "comine.name" .) }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .Values.user }}
  runAsGroup: {{ .Values.user }}
  fsGroup: {{ .Values.user }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "comine.container" -}}
image: {{ include "comine.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* A Secret's files are the group's as well, and comine takes no key that others may read: so the key is copied. */}}
{{- define "comine.keys" -}}
- name: keys
  {{- include "comine.container" . | nindent 2 }}
  command: [install, --mode=600, /run/secrets/given/tls.crt, /run/secrets/given/tls.key, /run/secrets/comine/]
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: given, mountPath: /run/secrets/given, readOnly: true}
    - {name: keys, mountPath: /run/secrets/comine}
{{- end -}}

{{/* Variables of the environment, and those from Secrets. */}}
{{- define "comine.env" -}}
{{- range $name, $value := .values.env -}}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{ end }}
{{- range .values.secretEnv -}}
- name: {{ .env }}
  valueFrom:
    secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}
{{ end }}
{{- end -}}

{{/* Where callers come from outside, their addresses are kept. */}}
{{- define "comine.traffic" -}}
{{- with .values.service -}}
{{- if ne .type "ClusterIP" -}}
externalTrafficPolicy: {{ .externalTrafficPolicy }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "comine.mounts" -}}
- {name: etc, mountPath: /etc/comine, readOnly: true}
- {name: keys, mountPath: /run/secrets/comine, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "comine.volumes" -}}
- name: etc
  configMap: {name: {{ include "comine.files" . }}}
- name: given
  secret:
    secretName: {{ required (printf "%s.tlsSecret is needed: a Secret with the certificate and its key" .part) .values.tlsSecret }}
    defaultMode: 0440
- name: keys
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end -}}

{{/* The account of the pod, where you name none of your own. */}}
{{- define "comine.account" -}}
{{- if not .Values.serviceAccount.name }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "comine.name" . }}
  labels: {{- include "comine.labels" . | nindent 4 }}
  {{- with .Values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{- define "comine.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .values.state.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .values.state.size }}
{{- end -}}

{{/* Annotations of the pod: that its metrics are read, where it shows any, and yours. */}}
{{- define "comine.annotations" }}
{{- $scraped := dict }}
{{- with .values.metricsPort }}
{{- $scraped = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .) }}
{{- end }}
{{- with merge (dict) .values.podAnnotations $scraped }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Has an operator of Prometheus read the metrics, where it is asked to. */}}
{{- define "comine.podmonitor" }}
{{- if and .values.metricsPort .values.podMonitor.enabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "comine.name" . }}
  labels:
    {{- include "comine.labels" . | nindent 4 }}
    {{- with .values.podMonitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels: {{- include "comine.selector" . | nindent 6 }}
  podMetricsEndpoints:
    - port: metrics
      interval: {{ .values.podMonitor.interval }}
{{- end }}
{{- end }}
