{{- /* What the FlinkDeployments of a region have in common. */}}

{{- /*
Flink's settings as a mapping: those of docker/flink-conf/config.yaml but what Kubernetes decides, over
them the chart's own, over them the values'. Takes {root, job}.
*/}}
{{- define "freshet.flinkConfiguration" -}}
{{- $storage := printf "%s/%s" (include "freshet.storage" .) .Release.Name -}}
{{- $shipped := .Files.Get "files/flink-conf/config.yaml" | fromYaml -}}
{{- $shipped = omit $shipped "jobmanager.rpc.address" "jobmanager.rpc.port" "jobmanager.bind-host" "taskmanager.bind-host" "rest.address" "rest.bind-address" "jobmanager.memory.process.size" "taskmanager.memory.process.size" "parallelism.default" -}}
{{- $own := dict -}}
{{- /* Pods run docker/flink, which finds Flink; its settings are where Kubernetes' part mounts them. */ -}}
{{- $_ := set $own "kubernetes.entry.path" "/opt/freshet/docker/flink" -}}
{{- $_ := set $own "kubernetes.flink.conf.dir" "/opt/flink/conf" -}}
{{- /* A job in Python takes no jar but these. */ -}}
{{- $_ := set $own "pipeline.classpaths" "file:///opt/freshet/operators/target/freshet-flink.jar" -}}
{{- $_ := set $own "high-availability.type" "kubernetes" -}}
{{- $_ := set $own "high-availability.storageDir" (printf "%s/ha" $storage) -}}
{{- $_ := set $own "execution.checkpointing.dir" (printf "%s/checkpoints" $storage) -}}
{{- $_ := set $own "execution.checkpointing.savepoint-dir" (printf "%s/savepoints" $storage) -}}
{{- /* Flink's own sizes are the JVM's. Beside it run the functions' processes, and on a JobManager the
client that reads the job's script: they may use half as much again before the pod is ended. */ -}}
{{- $_ := set $own "kubernetes.jobmanager.memory.limit-factor" "1.5" -}}
{{- $_ := set $own "kubernetes.taskmanager.memory.limit-factor" "1.5" -}}
{{- $settings := mergeOverwrite $shipped $own .Values.flinkConfiguration -}}
{{- range $name, $value := $settings }}
  {{- /* Numbers of YAML are floating-point ones here, and large ones would get an exponent. */ -}}
  {{- if and (kindIs "float64" $value) (eq (toString (floor $value)) (toString $value)) }}
    {{- $value = int64 $value }}
  {{- end }}
  {{- $_ := set $settings $name (toString $value) }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{- /* Variables of all containers of our image. */}}
{{- define "freshet.env" -}}
- name: FRESHET_CONFIG
  value: /etc/freshet/freshet.yaml
- name: FLINK_CONF_DIR
  value: /opt/flink/conf
{{- range .Values.secretEnv }}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: {name: {{ .secret }}, key: {{ .key | quote }}, optional: false}
{{- end }}
{{- end }}

{{- define "freshet.volumeMounts" -}}
- {name: freshet-config, mountPath: /etc/freshet, readOnly: true}
{{- if include "freshet.claim" . }}
- {name: freshet-state, mountPath: /var/lib/freshet}
{{- end }}
{{- range $number, $mount := .Values.mounts }}
- {name: freshet-mount-{{ $number }}, mountPath: {{ $mount.path | quote }}, readOnly: true}
{{- end }}
{{- end }}

{{- /* The configuration, the definitions of some tables, secrets, and state. Takes {root, tables}. */}}
{{- define "freshet.volumes" -}}
{{- $root := .root -}}
{{- $items := list -}}
{{- range $name, $table := .tables -}}
  {{- if $table.definition -}}
    {{- $items = append $items (dict "key" (printf "%s.yaml" $name) "path" (printf "tables/%s.yaml" $name)) -}}
  {{- end -}}
{{- end -}}
- name: freshet-config
  projected:
    sources:
      - configMap: {name: {{ include "freshet.name" $root }}-config}
      {{- if $items }}
      - configMap: {name: {{ include "freshet.name" $root }}-tables, items: {{ toJson $items }}}
      {{- end }}
{{- with include "freshet.claim" $root }}
- name: freshet-state
  persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- range $number, $mount := $root.Values.mounts }}
- name: freshet-mount-{{ $number }}
  {{- $items := list }}
  {{- range $mount.keys }}
  {{- $items = append $items (dict "key" . "path" .) }}
  {{- end }}
  {{- if $mount.secret }}
  secret: {secretName: {{ $mount.secret }}, optional: false, defaultMode: 0440, items: {{ toJson $items }}}
  {{- else }}
  configMap: {name: {{ $mount.configMap }}, optional: false, items: {{ toJson $items }}}
  {{- end }}
{{- end }}
{{- end }}

{{- /* What all pods have, JobManagers, TaskManagers and tests. Takes {root, tables}. */}}
{{- define "freshet.podSpec" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext: {{- toYaml .root.Values.pod.securityContext | nindent 2 }}
{{- with .root.Values.pod.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
volumes: {{- include "freshet.volumes" . | nindent 2 }}
{{- end }}

{{- /* Arguments of a job's script, but for its parallelism. Takes a job. */}}
{{- define "freshet.jobArguments" -}}
{{- range $name, $table := .tables }}
- --table
- {{ include "freshet.definitionPath" (dict "name" $name "table" $table) | quote }}
{{- end }}
- --config
- /etc/freshet/freshet.yaml
{{- end }}
