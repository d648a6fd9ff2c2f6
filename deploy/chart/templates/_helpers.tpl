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

{{/* What every pod has in common. `root`: the context of the chart. */}}
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
{{- with .root.Values.secretName }}
  - name: secrets
    secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* What every container has in common. `run` is a folder of each pod, because its files say which process is ready. */}}
{{- define "galatea.container" -}}
image: {{ include "galatea.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
envFrom:
  - configMapRef: {name: {{ .root.Release.Name }}-settings}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: home, mountPath: /var/lib/galatea}
  - {name: run, mountPath: /var/lib/galatea/run}
  - {name: tmp, mountPath: /tmp}
{{- if .root.Values.secretName }}
  - {name: secrets, mountPath: /run/galatea, readOnly: true}
{{- end }}
{{- end }}
