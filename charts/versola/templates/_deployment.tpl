{{/*
The Deployment of a component:
(dict "root" $ "component" "auth" "ports" (list (dict "name" "http" "port" 8080) ...) "diagnostics" 8081).
*/}}
{{- define "versola.deployment" -}}
{{- $values := index .root.Values .component -}}
{{- $name := printf "%s-%s" (include "versola.fullname" .root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "versola.labels" . | nindent 4 }}
spec:
  replicas: {{ int $values.replicas }}
  revisionHistoryLimit: 5
  strategy:
    type: RollingUpdate
    rollingUpdate:
      # A node holds one pod of the component, so the old one leaves first.
      maxSurge: 0
      maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "versola.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "versola.labels" . | nindent 8 }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/config: {{ include (printf "versola.config.%s" .component) . | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "versola.serviceAccountName" .root }}
      automountServiceAccountToken: false
      # Variables of neighbouring Services (VERSOLA_AUTH_PORT=tcp://...) would
      # be taken for configuration.
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      securityContext:
        {{- include "versola.podSecurity" . | nindent 8 }}
      # 5 s for the endpoints to forget the pod, 15 s for the program to drain,
      # the rest to spare.
      terminationGracePeriodSeconds: 30
      containers:
        - name: {{ .component }}
          image: {{ include "versola.image" .root | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [serve, --role={{ .component }}, --config=/etc/versola/{{ .component }}.yaml]
          {{- with $values.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            {{- range .ports }}
            - name: {{ .name }}
              containerPort: {{ .port }}
            {{- end }}
            - name: diagnostics
              containerPort: {{ .diagnostics }}
          startupProbe:
            httpGet: {path: /livez, port: diagnostics}
            periodSeconds: 1
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /livez, port: diagnostics}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: diagnostics}
            periodSeconds: 5
            timeoutSeconds: 3
            failureThreshold: 2
          lifecycle:
            preStop:
              sleep:
                seconds: 5
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            {{- include "versola.containerSecurity" . | nindent 12 }}
          volumeMounts:
            {{- include "versola.mounts" . | nindent 12 }}
      volumes:
        {{- include "versola.volumes" (merge (dict "configMap" $name) .) | nindent 8 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector:
            matchLabels:
              {{- include "versola.selector" . | nindent 14 }}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  {{- include "versola.selector" . | nindent 18 }}
{{- end -}}

{{- define "versola.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    {{- include "versola.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .type }}
  selector:
    {{- include "versola.selector" . | nindent 4 }}
  ports:
    - name: {{ .port.name }}
      port: {{ .port.port }}
      targetPort: {{ .port.name }}
{{- end -}}

{{- define "versola.ingress" -}}
{{- $values := index .root.Values .component -}}
{{- $host := include "versola.host" .url -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ .name }}
  labels:
    {{- include "versola.labels" . | nindent 4 }}
  {{- with $values.ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with $values.ingress.className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  {{- with $values.ingress.tlsSecret }}
  tls:
    - hosts: [{{ $host | quote }}]
      secretName: {{ . | quote }}
  {{- end }}
  rules:
    - host: {{ $host | quote }}
      http:
        paths:
          - path: /
            pathType: Prefix
            backend:
              service:
                name: {{ .name }}
                port:
                  name: http
{{- end -}}

{{- define "versola.disruption" -}}
{{- $values := index .root.Values .component -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "versola.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ $values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "versola.selector" . | nindent 6 }}
{{- end -}}
