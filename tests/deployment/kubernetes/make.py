"""Makes the schemas of this folder of what their projects publish.

::

    pip download --no-deps kubernetes-validate==1.37.0
    mvn dependency:copy -Dartifact=org.apache.flink:flink-kubernetes-operator-api:1.10.0
    go mod download github.com/prometheus-operator/prometheus-operator@v0.85.0
    python tests/deployment/kubernetes/make.py WHEEL JAR MODULE_FOLDER

Unknown fields are refused, as the API server does for what it validates strictly; descriptions are
left out. The Flink operator's pod templates are Kubernetes' own definition of them, in parts.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
KUBERNETES = "v1.34.0"
DEFINITIONS = "definitions.json"
# File names as kubeconform asks for them: kind, the first part of its group, version.
KINDS = {
    "configmap-v1": "core.v1.ConfigMap",
    "persistentvolumeclaim-v1": "core.v1.PersistentVolumeClaim",
    "pod-v1": "core.v1.Pod",
    "service-v1": "core.v1.Service",
    "serviceaccount-v1": "core.v1.ServiceAccount",
    "networkpolicy-networking-v1": "networking.v1.NetworkPolicy",
    "poddisruptionbudget-policy-v1": "policy.v1.PodDisruptionBudget",
    "role-rbac-v1": "rbac.v1.Role",
    "rolebinding-rbac-v1": "rbac.v1.RoleBinding",
}
POD_TEMPLATE = "core.v1.PodTemplateSpec"
POD = "core.v1.PodSpec"
POD_TEMPLATE_PART = "PartOfPodTemplateSpec"
NEWER_FLINK = ["v2_0", "v2_1", "v2_2"]
"""What operators know that are newer than the one whose schema could be had."""

_PREFIX = "io.k8s.api."
_REFERENCE = "#/definitions/"


def main() -> None:
    """Writes a file for each kind, and one of what Kubernetes' own have in common."""
    wheel, jar, monitoring = map(Path, sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        folder = f"kubernetes_validate/kubernetes-json-schema/{KUBERNETES}-local"
        published = json.loads(archive.read(f"{folder}/_definitions.json"))["$defs"]
    wanted = [_PREFIX + name for name in (*KINDS.values(), POD_TEMPLATE)]
    definitions: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in definitions:
            definitions[name] = strict(published[name])
            wanted += references(definitions[name])
    definitions[_PREFIX + POD_TEMPLATE_PART] = part_of_pod_template(definitions)
    write(DEFINITIONS, {"definitions": dict(sorted(definitions.items()))})
    for file, name in KINDS.items():
        write(f"{file}.json", reference(name))

    with zipfile.ZipFile(jar) as archive:
        crd = archive.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml")
    write("flinkdeployment-flink-v1beta1.json", flink_deployment(crd))
    folder = monitoring / "example/prometheus-operator-crd"
    for kind in ("servicemonitor", "prometheusrule"):
        crd = (folder / f"monitoring.coreos.com_{kind}s.yaml").read_bytes()
        write(f"{kind}-monitoring-v1.json", resource(crd))


def flink_deployment(crd: bytes) -> dict[str, Any]:
    """The Flink operator's resource."""
    schema = resource(crd)
    spec = schema["properties"]["spec"]["properties"]
    for part in (spec, spec["jobManager"]["properties"], spec["taskManager"]["properties"]):
        part["podTemplate"] = reference(POD_TEMPLATE_PART)
    spec["flinkVersion"]["enum"] += NEWER_FLINK
    return schema


def part_of_pod_template(definitions: dict[str, Any]) -> dict[str, Any]:
    """A pod template that may lack containers: the operator puts several of them together."""
    pod = {name: each for name, each in definitions[_PREFIX + POD].items() if name != "required"}
    template = definitions[_PREFIX + POD_TEMPLATE]
    return template | {"properties": template["properties"] | {"spec": pod}}


def resource(crd: bytes) -> dict[str, Any]:
    """The schema in a custom resource's definition, without what its operator writes."""
    versions = yaml.safe_load(crd)["spec"]["versions"]
    schema: dict[str, Any] = strict(versions[0]["schema"]["openAPIV3Schema"])
    schema["properties"].pop("status", None)
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    return schema


def reference(name: str) -> dict[str, Any]:
    """A reference to one of Kubernetes' own definitions, from another file."""
    return {"$ref": f"{DEFINITIONS}{_REFERENCE}{_PREFIX}{name}"}


def references(schema: Any) -> list[str]:
    """The definitions that a schema refers to."""
    if isinstance(schema, list):
        return [name for part in schema for name in references(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].removeprefix(_REFERENCE)] if "$ref" in schema else []
    return own + references(list(schema.values()))


def strict(schema: Any, named: bool = False) -> Any:
    """The schema without descriptions, where unknown fields are refused.

    Args:
        schema: or a part of one.
        named: whether it is a mapping of fields' names, of which any may be "description".
    """
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if named:
        return {name: strict(part) for name, part in schema.items()}
    if "$ref" in schema:
        return {"$ref": _REFERENCE + schema["$ref"].rpartition("/")[2]}
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return {"type": ["integer", "string"]}
    kept = {
        name: strict(part, named=name == "properties")
        for name, part in schema.items()
        if name not in ("description", "format") and not name.startswith("x-kubernetes")
    }
    if "properties" in kept and not schema.get("x-kubernetes-preserve-unknown-fields"):
        kept.setdefault("additionalProperties", False)
    return kept


def write(name: str, schema: dict[str, Any]) -> None:
    """Writes a schema, a definition a line: short, and still to be compared."""
    text = json.dumps(schema, separators=(",", ":"), sort_keys=True)
    text = text.replace('"io.k8s.', '\n"io.k8s.')
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
