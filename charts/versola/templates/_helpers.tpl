{{- define "versola.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "versola.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "versola.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "versola.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "versola.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "versola.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods of a component: (dict "root" $ "component" "auth"). */}}
{{- define "versola.selector" -}}
app.kubernetes.io/name: {{ include "versola.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "versola.labels" -}}
{{ include "versola.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "versola.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The host of a URL. */}}
{{- define "versola.host" -}}
{{- regexReplaceAll ":[0-9]+$" (urlParse .).host "" -}}
{{- end -}}

{{- define "versola.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "versola.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/*
Whether a component declares the release's edge in central: auth of a trial, which
needs the edge's keys for that. Elsewhere auth knows nothing of an edge's.
*/}}
{{- define "versola.seeds" -}}
{{- and (eq .component "auth") .root.Values.demo.enabled .root.Values.edge.enabled -}}
{{- end -}}

{{/*
Volumes of every pod: the configuration, the Secret's files (nothing else of
the Secret), and a place for the copy of the catalog.
*/}}
{{- define "versola.volumes" -}}
{{- $values := index .root.Values .component -}}
- name: config
  configMap:
    name: {{ .configMap }}
- name: secrets
  secret:
    secretName: {{ required (printf "%s.existingSecret is required: the name of a Secret with %s" .component (values $values.secretKeys | sortAlpha | join ", ")) $values.existingSecret }}
    defaultMode: 0440
    items:
      {{- range $file, $key := $values.secretKeys }}
      - key: {{ $key | quote }}
        path: {{ $file }}
      {{- end }}
{{- if eq (include "versola.seeds" .) "true" }}
- name: edge-keys
  secret:
    secretName: {{ .root.Values.edge.existingSecret | quote }}
    defaultMode: 0440
    items:
      - key: {{ .root.Values.edge.secretKeys.privateKeys | quote }}
        path: privateKeys
{{- end }}
- name: state
  emptyDir:
    sizeLimit: 256Mi
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "versola.mounts" -}}
- name: config
  mountPath: /etc/versola
  readOnly: true
- name: secrets
  mountPath: /run/secrets/versola
  readOnly: true
{{- if eq (include "versola.seeds" .) "true" }}
- name: edge-keys
  mountPath: /run/secrets/versola-edge
  readOnly: true
{{- end }}
- name: state
  mountPath: /var/lib/versola
{{- with (index .root.Values .component).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
