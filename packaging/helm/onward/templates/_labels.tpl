{{- define "onward.selector" -}}
app.kubernetes.io/name: onward
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "onward.labels" -}}
{{ include "onward.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
