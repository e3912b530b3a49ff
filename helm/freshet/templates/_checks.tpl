{{- /*
What values.schema.json cannot say. Everything that is wrong is told at once, before anything is
installed. The names of secret properties, and what a written-out password is, are those of
freshet/secrets.py.
*/}}

{{- define "freshet.check" -}}
{{- $problems := (include "freshet.problems" . | fromYaml).problems -}}
{{- if $problems -}}
{{- fail (printf "\n  %s" (join "\n  " $problems)) -}}
{{- end -}}
{{- end }}

{{- define "freshet.problems" -}}
{{- $problems := list -}}
{{- $config := .Values.config -}}
{{- $files := list -}}
{{- $paths := list -}}
{{- range .Values.mounts -}}
  {{- $mount := . -}}
  {{- if eq (empty .secret) (empty .configMap) -}}
    {{- $problems = append $problems (printf "mounts: %s needs a secret or a configMap, and not both" .path) -}}
  {{- end -}}
  {{- if has .path $paths -}}
    {{- $problems = append $problems (printf "mounts: %s is there twice; give each a folder of its own" .path) -}}
  {{- end -}}
  {{- $paths = append $paths .path -}}
  {{- range .keys -}}
    {{- $files = append $files (printf "%s/%s" $mount.path .) -}}
  {{- end -}}
{{- end -}}
{{- $variables := list -}}
{{- range .Values.secretEnv -}}
  {{- $variables = append $variables .name -}}
{{- end -}}

{{- /* References lead to what is mounted. */ -}}
{{- $text := $config | toRawJson -}}
{{- range regexFindAll "\\$\\{file:[^}]*\\}" $text -1 | uniq -}}
  {{- $path := . | trimPrefix "${file:" | trimSuffix "}" -}}
  {{- if not (has $path $files) -}}
    {{- $problems = append $problems (printf "config: no mount has the file of %s; mounts have %s" . (join ", " $files | default "none")) -}}
  {{- end -}}
{{- end -}}
{{- range regexFindAll "\\$\\{env:[^}]*\\}" $text -1 | uniq -}}
  {{- $name := . | trimPrefix "${env:" | trimSuffix "}" -}}
  {{- if not (has $name $variables) -}}
    {{- $problems = append $problems (printf "config: secretEnv has no variable for %s; it has %s" . (join ", " $variables | default "none")) -}}
  {{- end -}}
{{- end -}}

{{- /* Kafka's properties, of this region and of those that have their own. */ -}}
{{- $properties := dict "config.kafka_properties" ($config.kafka_properties | default dict) -}}
{{- range $name, $region := $config.regions -}}
  {{- $_ := set $properties (printf "config.regions.%s.kafka_properties" $name) (($region | default dict).kafka_properties | default dict) -}}
{{- end -}}
{{- range $place, $each := $properties -}}
  {{- range $name, $value := $each -}}
    {{- $literal := regexReplaceAll "\\$\\{(file|env):[^}]*\\}" (toString $value) "" -}}
    {{- if and $literal (regexMatch "(?i)(password|passphrase|secret|token|jaas\\.config|oauthbearer\\.config|private\\.key|key\\.pem|keystore\\.key)$" $name) -}}
      {{- $problems = append $problems (printf "%s.%s: the secret is written out; put it into a Secret, and ${file:...} in its place" $place $name) -}}
    {{- end -}}
    {{- if and (regexMatch "^ssl\\..*\\.location$" $name) (not (has $value $files)) -}}
      {{- $problems = append $problems (printf "%s.%s: no mount has %s; mounts have %s" $place $name $value (join ", " $files | default "none")) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- range $region, $url := $config.redis -}}
  {{- $literal := regexReplaceAll "\\$\\{(file|env):[^}]*\\}" $url "" -}}
  {{- if regexMatch "://([^@]*:)?[^:@]+@" $literal -}}
    {{- $problems = append $problems (printf "config.redis.%s: the password is written out; put it into a Secret, and ${file:...} in its place" $region) -}}
  {{- end -}}
{{- end -}}
{{- range $name := list "redis_ca" "redis_certificate" "redis_key" -}}
  {{- $file := get $config $name -}}
  {{- if and $file (not (has $file $files)) -}}
    {{- $problems = append $problems (printf "config.%s: no mount has %s; mounts have %s" $name $file (join ", " $files | default "none")) -}}
  {{- end -}}
{{- end -}}

{{- /* Tables and jobs. */ -}}
{{- $own := include "freshet.ownRegion" . -}}
{{- range $name, $table := .Values.tables -}}
  {{- if eq (empty $table.definition) (empty $table.file) -}}
    {{- $problems = append $problems (printf "tables.%s: needs a definition or a file, and not both" $name) -}}
  {{- end -}}
  {{- if and $table.file (empty $table.regions) -}}
    {{- $problems = append $problems (printf "tables.%s.regions is missing: the chart cannot look into %s" $name $table.file) -}}
  {{- end -}}
  {{- if and $table.definition $table.regions -}}
    {{- $problems = append $problems (printf "tables.%s.regions: give them in the definition" $name) -}}
  {{- end -}}
  {{- if hasKey ($table.definition | default dict) "name" -}}
    {{- $problems = append $problems (printf "tables.%s.definition.name: leave it out, the key is the name" $name) -}}
  {{- end -}}
{{- end -}}
{{- $jobs := (include "freshet.jobs" . | fromYaml).jobs -}}
{{- if not $jobs -}}
  {{- $problems = append $problems (printf "tables: none is for %s, so there is nothing to install" $own) -}}
{{- end -}}
{{- $names := list -}}
{{- range $jobs -}}
  {{- if gt (len .name) 45 -}}
    {{- $problems = append $problems (printf "tables: the job's name %s is longer than the 45 characters that Flink allows; shorten the release's or the table's" .name) -}}
  {{- end -}}
  {{- if has .name $names -}}
    {{- $problems = append $problems (printf "tables: two have the job name %s; rename one" .name) -}}
  {{- end -}}
  {{- $names = append $names .name -}}
{{- end -}}

{{- /* State. */ -}}
{{- $places := list -}}
{{- range $name, $value := dict "uri" .Values.storage.uri "existingClaim" .Values.storage.existingClaim "create.size" .Values.storage.create.size -}}
  {{- if $value -}}{{- $places = append $places $name -}}{{- end -}}
{{- end -}}
{{- if ne (len $places) 1 -}}
  {{- $problems = append $problems (printf "storage: give one of uri, existingClaim and create.size, not %s" (join " and " $places | default "none")) -}}
{{- end -}}
{{- range $name, $value := .Values.flinkConfiguration -}}
  {{- if regexMatch "^(kubernetes\\.(entry\\.path|flink\\.conf\\.dir|cluster-id|namespace|service-account)|high-availability\\..*|(jobmanager|taskmanager)\\.memory\\.process\\.size|taskmanager\\.numberOfTaskSlots|execution\\.checkpointing\\.(dir|savepoint-dir)|parallelism\\.default|rest\\.port|metrics\\.reporter\\.prom\\.port)$" $name -}}
    {{- $problems = append $problems (printf "flinkConfiguration.%s: the chart sets it; see storage, jobManager and taskManager" $name) -}}
  {{- end -}}
{{- end -}}
{{- toYaml (dict "problems" $problems) -}}
{{- end }}
