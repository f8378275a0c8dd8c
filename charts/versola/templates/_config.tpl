{{/*
The configuration files. They are built as values and written by toYaml, so
that no text of the operator's can break out of its place. Secrets are named by
their files; nothing here holds one.
*/}}

{{- define "versola.config.common" -}}
role: {{ .component }}
profile: {{ .root.Values.profile }}
state_dir: /var/lib/versola
log:
  {{- toYaml .root.Values.log | nindent 2 }}
telemetry:
  {{- $telemetry := dict "sample_ratio" .root.Values.telemetry.sampleRatio -}}
  {{- with .root.Values.telemetry.otlpEndpoint }}{{ $_ := set $telemetry "otlp_endpoint" . }}{{ end }}
  {{- toYaml $telemetry | nindent 2 }}
{{- if .root.Values.demo.enabled }}
demo:
  enabled: true
{{- end }}
{{- end -}}

{{- define "versola.config.auth" -}}
{{- $v := .root.Values.auth -}}
{{ include "versola.config.common" . }}
database:
  url_file: /run/secrets/versola/databaseURL
  max_connections: {{ int $v.maxConnections }}
keys:
  encryption_file: /run/secrets/versola/encryptionKeys
  tokens_file: /run/secrets/versola/tokenKeys
  pepper_file: /run/secrets/versola/pepper
auth:
  {{- $auth := dict "listen" ":8080" "central" $v.central "root_tenant" $v.rootTenant "allow_private_networks" $v.allowPrivateNetworks "otp" $v.otp -}}
  {{- $_ := set $auth "issuer" (required "auth.issuer is required: the public URL of auth" $v.issuer) -}}
  {{- with $v.trustedProxies }}{{ $_ := set $auth "trusted_proxies" . }}{{ end -}}
  {{- toYaml $auth | nindent 2 }}
central:
  {{- $central := dict "listen" ":8090" "allow_private_networks" $v.allowPrivateNetworks "url" (printf "http://%s-auth-internal.%s.svc:8090" (include "versola.fullname" .root) .root.Release.Namespace) -}}
  {{- with $v.centralTrustedProxies }}{{ $_ := set $central "trusted_proxies" . }}{{ end -}}
  {{- with $v.signingKeys }}{{ $_ := set $central "keys" (dict "rotate_every" .rotateEvery "publish_for" .publishFor "retire_after" .retireAfter) }}{{ end -}}
  {{- toYaml $central | nindent 2 }}
{{- if eq (include "versola.seeds" .) "true" }}
edge:
  {{- toYaml (dict "id" .root.Values.edge.id "public_url" .root.Values.edge.publicURL "private_keys_file" "/run/secrets/versola-edge/privateKeys") | nindent 2 }}
{{- end }}
diagnostics:
  auth: ":8081"
{{- end -}}

{{- define "versola.config.edge" -}}
{{- $v := .root.Values.edge -}}
{{- $auth := printf "http://%s-auth" (include "versola.fullname" .root) -}}
{{ include "versola.config.common" . }}
edge:
  {{- $edge := dict "listen" ":8095" "id" $v.id -}}
  {{- $_ := set $edge "public_url" (required "edge.publicURL is required: the public URL of edge" $v.publicURL) -}}
  {{- $_ := set $edge "database" (dict "url_file" "/run/secrets/versola/databaseURL" "max_connections" (int $v.maxConnections)) -}}
  {{- $_ := set $edge "private_keys_file" "/run/secrets/versola/privateKeys" -}}
  {{- $_ := set $edge "session_keys_file" "/run/secrets/versola/sessionKeys" -}}
  {{- with $v.trustedProxies }}{{ $_ := set $edge "trusted_proxies" . }}{{ end -}}
  {{- if $v.centralURL }}{{ $_ := set $edge "central_url" $v.centralURL }}
  {{- else if .root.Values.auth.enabled }}{{ $_ := set $edge "central_url" (printf "%s-internal.%s.svc:8090" $auth .root.Release.Namespace) }}
  {{- else }}{{ fail "edge.centralURL is required where auth is not part of the release" }}{{ end -}}
  {{- if $v.authURL }}{{ $_ := set $edge "auth_url" $v.authURL }}
  {{- else if .root.Values.auth.enabled }}{{ $_ := set $edge "auth_url" (printf "%s.%s.svc:8080" $auth .root.Release.Namespace) }}{{ end -}}
  {{- toYaml $edge | nindent 2 }}
diagnostics:
  edge: ":8096"
{{- end -}}
