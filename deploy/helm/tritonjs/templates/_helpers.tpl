{{- define "tritonjs.labels" -}}
app.kubernetes.io/name: tritonjs
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "tritonjs.selector" -}}
app.kubernetes.io/name: tritonjs
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
