{{- /* Names and labels, and what the values say of this region. */}}

{{- define "freshet.name" -}}
{{- .Release.Name | trunc 30 | trimSuffix "-" -}}
{{- end }}

{{- define "freshet.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "freshet.labels" -}}
{{ include "freshet.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Labels on one line, for people. Takes a mapping. */}}
{{- define "freshet.labelList" -}}
{{- $labels := list -}}
{{- range $name, $value := . -}}
  {{- $labels = append $labels (printf "%s=%s" $name $value) -}}
{{- end -}}
{{- join ", " $labels -}}
{{- end }}

{{- define "freshet.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "freshet.name" .) }}
{{- else -}}
{{ required "serviceAccount.name: name the existing one, as serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "freshet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "freshet.ownRegion" -}}
{{ .Values.config.region | default .Values.config.home_region }}
{{- end }}

{{- /* home, destination or waypoint */}}
{{- define "freshet.role" -}}
{{- $own := include "freshet.ownRegion" . -}}
{{- if eq $own .Values.config.home_region -}}
home
{{- else -}}
{{ (get (.Values.config.regions | default dict) $own | default dict).role | default "destination" }}
{{- end -}}
{{- end }}

{{- /* The regions that a table is for, as {regions: [...]}. Takes a table of the values. */}}
{{- define "freshet.regionsOf" -}}
{{- toYaml (dict "regions" (.regions | default (.definition | default dict).regions | default list)) -}}
{{- end }}

{{- /* Where a table's definition is in the pods. Takes a name and a table of the values. */}}
{{- define "freshet.definitionPath" -}}
{{- .table.file | default (printf "/etc/freshet/tables/%s.yaml" .name) -}}
{{- end }}

{{- /*
The jobs of this region, as {jobs: [...]}, each with
  name:        of its FlinkDeployment; Flink allows 45 characters
  kind:        feature, multicast or region; names its script
  tables:      of the values, by name
  parallelism, taskManager, savepoint
*/}}
{{- define "freshet.jobs" -}}
{{- $role := include "freshet.role" . -}}
{{- $own := include "freshet.ownRegion" . -}}
{{- $home := .Values.config.home_region -}}
{{- $jobs := list -}}
{{- $sent := dict -}}
{{- range $name, $table := .Values.tables -}}
  {{- $regions := (include "freshet.regionsOf" $table | fromYaml).regions -}}
  {{- $abroad := without $regions $home -}}
  {{- if eq $role "home" -}}
    {{- $parallelism := $table.parallelism | default (($table.definition | default dict).parallelism) | default 1 -}}
    {{- $full := printf "%s-%s" (include "freshet.name" $) ($name | lower | replace "_" "-" | replace "." "-") -}}
    {{- $jobs = append $jobs (dict "name" $full "kind" "feature" "tables" (dict $name $table) "parallelism" $parallelism "taskManager" ($table.taskManager | default dict) "savepoint" ($table.savepoint | default "")) -}}
  {{- end -}}
  {{- if or (and (ne $role "destination") $abroad) (and (eq $role "destination") (has $own $regions)) -}}
    {{- $_ := set $sent $name $table -}}
  {{- end -}}
{{- end -}}
{{- if $sent -}}
  {{- $kind := ternary "multicast" "region" (eq $role "home") -}}
  {{- $own := get .Values (printf "%sJob" $kind) -}}
  {{- $jobs = append $jobs (dict "name" (printf "%s-job-%s" (include "freshet.name" .) $kind) "kind" $kind "tables" $sent "parallelism" $own.parallelism "taskManager" $own.taskManager "savepoint" $own.savepoint) -}}
{{- end -}}
{{- toYaml (dict "jobs" $jobs) -}}
{{- end }}

{{- /* The URL of the folder of the jobs' state. */}}
{{- define "freshet.storage" -}}
{{- .Values.storage.uri | default "file:///var/lib/freshet" | trimSuffix "/" -}}
{{- end }}

{{- /* The claim of the jobs' state; empty where there is none. */}}
{{- define "freshet.claim" -}}
{{- if .Values.storage.existingClaim -}}
{{ .Values.storage.existingClaim }}
{{- else if .Values.storage.create.size -}}
{{ include "freshet.name" . }}-state
{{- end -}}
{{- end }}
