{{- define "galatea.labels" -}}
app.kubernetes.io/name: galatea
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "galatea.selector" -}}
app.kubernetes.io/name: galatea
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "galatea.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- define "galatea.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-home" .Release.Name) }}
{{- end }}

{{/* What every pod has in common. `root`: the context of the chart. `own`: values with `secretName` and `settings`. */}}
{{- define "galatea.pod" -}}
serviceAccountName: {{ .root.Release.Name }}
automountServiceAccountToken: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: home
    persistentVolumeClaim: {claimName: {{ include "galatea.claim" .root }}}
  - {name: run, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
  {{- include "galatea.secrets" . | nindent 2 }}
{{- end }}

{{/* The volume of /run/galatea, if any. Of two files with one name, only the one of the own secret is in it. */}}
{{- define "galatea.secrets" -}}
{{- with compact (list .root.Values.secretName .own.secretName) -}}
- name: {{ $.volume }}
  projected:
    defaultMode: 0440
    sources: # the last one that has a file counts
      {{- range . }}
      - secret: {name: {{ . }}}
      {{- end }}
{{- end }}
{{- end }}

{{/* What every container has in common. `own`, `volume`: its secrets and settings, as above; `component`: its process, if any. `run` is a folder of each pod, because its files say which process is ready. */}}
{{- define "galatea.container" -}}
image: {{ include "galatea.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
envFrom:
  - configMapRef: {name: {{ .root.Release.Name }}-settings}
  {{- with .root.Values.environmentSecretName }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- $settings := deepCopy (.own.settings | default dict) }}
{{- if eq (.component | default "") "sql" }}
{{- /* No other process has it: with an address that others reach, each would need a certificate, also behind an ingress. */}}
{{- $_ := set $settings "GALATEA_SQL_HOST" (get .root.Values.settings "GALATEA_SQL_HOST" | default "0.0.0.0") }}
{{- end }}
{{- with $settings }}
env: # counts more than `envFrom`
  {{- range $name, $value := . }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: home, mountPath: /var/lib/galatea}
  - {name: run, mountPath: /var/lib/galatea/run}
  - {name: tmp, mountPath: /tmp}
{{- if or .root.Values.secretName .own.secretName }}
  - {name: {{ .volume }}, mountPath: /run/galatea, readOnly: true}
{{- end }}
{{- end }}
