"""The chart of helm/freshet makes manifests that fit Kubernetes, the image and the configuration.

Goal: what no cluster is needed for is known before anybody has one.

Method: `helm lint` and `helm template` with the values of a home region, a destination and a
waypoint; kubeconform with the schemas of tests/deployment/kubernetes; the rendered configuration,
tables and commands against Freshet's own checks, the image and Flink. Each mistake of a list is
made on purpose and must be told. Skipped where helm or kubeconform is missing.

Not tried here: a cluster, Flink's operator, and what it makes of a FlinkDeployment.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.dashboard_files import alert_rules
from freshet.config import Config, field_names
from freshet.multicast.building import region_settings
from freshet.stack.layout import CHECKOUT
from freshet.submission import job_script
from freshet.table import load_table
from tests.deployment.chart import (
    CHART,
    MAIN,
    ROLES,
    SCHEMAS,
    changed,
    containers_of,
    render,
    rendered,
    run_helm,
    template,
    values_of,
)
from tests.deployment.files import DOCKERFILE, FLINK_SETTINGS, copied_from_checkout, stages_of
from tests.deployment.server_checks import REPORTER, flink_knows
from tests.tools import tool

MISTAKES: list[tuple[str, str, Any, str]] = [
    # Misspelt keys, at each depth.
    ("home", "tabels", {}, "tabels"),
    ("home", "config/kafka_bootstraps", "x:1", "kafka_bootstraps"),
    ("home", "config/regions/gcp:us-east1-b/roles", "waypoint", "roles"),
    ("home", "image/repo", "x", "repo"),
    ("home", "storage/url", "s3://x", "url"),
    ("home", "jobManager/cpus", 1, "cpus"),
    ("home", "tables/cpu_stl/paralelism", 2, "paralelism"),
    ("home", "mounts/0/key", "password", "key"),
    ("home", "monitoring/serviceMonitor/enable", True, "enable"),
    ("home", "monitoring/prometheusRule/leaveout", ["NoJobRuns"], "leaveout"),
    ("home", "networkPolicy/egres", [], "egres"),
    # Broken values.
    ("home", "config/kafka_bootstrap", None, "kafka_bootstrap"),
    ("home", "config/home_region", "eu-west-1", "home_region"),
    ("home", "config/redis/aws:eu-west-1", "http://cache:6379", "aws:eu-west-1"),
    ("home", "config/start_offsets", "newest", "start_offsets"),
    ("home", "config/priority_share", 2, "priority_share"),
    ("home", "config/regions/gcp:us-east1-b/role", "waypont", "role"),
    ("home", "upgradeMode", "safepoint", "upgradeMode"),
    ("home", "jobManager/memory", "1Gi", "memory"),
    ("home", "jobManager/replicas", 0, "replicas"),
    ("home", "tables/cpu_stl/parallelism", "many", "parallelism"),
    ("home", "tables/cpu_stl/file", "/opt/tables/a.py", "cpu_stl: needs a definition or a file"),
    ("home", "tables/cpu_stl/definition", None, "cpu_stl: needs a definition or a file"),
    ("home", "tables/cpu_stl/definition/name", "cpu", "cpu_stl.definition.name"),
    ("home", "tables", {}, "tables"),
    ("home", "tables/CPU-STL", {"definition": {"window": {}}}, "eu-cpu-stl"),
    ("home", f"tables/{'x' * 43}", {"definition": {"window": {}}}, "45 characters"),
    ("destination", "tables/mine/regions", None, "tables.mine.regions"),
    ("destination", "config/region", "aws:sa-east-1", "none is for aws:sa-east-1"),
    ("destination", "storage/create/size", "20 GB", "size"),
    ("home", "storage/existingClaim", "claim", "existingClaim and uri"),
    ("home", "storage/uri", "", "storage"),
    ("home", "flinkConfiguration", {"rest.port": 1}, "flinkConfiguration.rest.port"),
    ("waypoint", "serviceAccount/name", "", "serviceAccount.name"),
    ("home", "monitoring/prometheusRule/releases", "all", "releases"),
    ("home", "monitoring/prometheusRule/leaveOut", ["NoJobsRun"], "leaveOut"),
    # Secrets that are missing, or written out.
    ("home", "mounts/0", None, "${file:/run/secrets/kafka/password}"),
    ("home", "mounts/0/keys", ["pasword"], "${file:/run/secrets/kafka/password}"),
    ("home", "mounts/1/path", "/run/secrets/cache", "${file:/run/secrets/redis/password}"),
    ("home", "mounts/1/path", "/run/secrets/kafka", "twice"),
    ("home", "mounts/0/secret", None, "/run/secrets/kafka needs a secret"),
    ("home", "mounts/2", None, "/etc/ssl/company/ca.pem"),
    ("home", "mounts/2/keys", ["other.pem"], "config.redis_ca"),
    ("destination", "secretEnv", [], "${env:REDIS_PASSWORD}"),
    ("destination", "secretEnv/0/key", None, "key"),
    ("home", "config/kafka_properties/sasl.password", "hunter2", "sasl.password"),
    ("home", "config/redis/aws:eu-west-1", "redis://me:hunter2@c:6379/0", "config.redis.aws"),
    ("home", "config/redis/aws:eu-west-1", "redis://hunter2@c:6379/0", "config.redis.aws"),
    (
        "destination",
        "config/regions/aws:eu-west-1/kafka_properties/sasl.password",
        "hunter2",
        "config.regions.aws:eu-west-1.kafka_properties.sasl.password",
    ),
]


@pytest.mark.parametrize(("role", "path", "value", "told"), MISTAKES)
def test_a_mistake_is_told(role: str, path: str, value: object, told: str) -> None:
    done = template(changed(values_of(role), path, value))
    assert done.returncode != 0, done.stdout
    assert told in done.stderr
    assert "hunter2" not in done.stderr.replace("redis://hunter2@c", ""), "no secret is shown"


@pytest.mark.parametrize("role", ROLES)
def test_the_chart_passes_lint(role: str) -> None:
    done = run_helm("lint", "--strict", str(CHART), "--values", str(CHART / f"ci/{role}.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_the_manifests_are_what_kubernetes_and_the_operators_take(role: str) -> None:
    done = _conform(rendered(role).text)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["summary"]["valid"] == len(rendered(role).all)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("flinkVersion: v2_2", "flinkVersion: v2_9", "flinkVersion"),
        ("upgradeMode: savepoint", "upgradeMode: safepoint", "upgradeMode"),
        ("entryClass:", "entryclass:", "entryclass"),
        ("containerPort:", "containerPorts:", "containerPort"),
        ("minAvailable:", "minAvailables:", "minAvailables"),
        ("podSelector:", "podSelectors:", "podSelectors"),
        ("interval:", "intervals:", "intervals"),
        ("verbs:", "verb:", "verb"),
        ("mountPath:", "mountpath:", "mountpath"),
        ("kind: FlinkDeployment", "kind: FlinkDeploiment", "FlinkDeploiment"),
    ],
)
def test_a_manifest_that_does_not_conform_is_told(right: str, wrong: str, told: str) -> None:
    text = rendered("home").text
    assert right in text, "the mistake can be made"
    done = _conform(text.replace(right, wrong))
    assert done.returncode != 0
    assert told in done.stdout


def _conform(text: str) -> subprocess.CompletedProcess[str]:
    name = "{{.ResourceKind}}{{.KindSuffix}}.json"
    return subprocess.run(
        [
            *(str(tool("kubeconform", "kubeconform")), "-strict", "-summary", "-output", "json"),
            *("-schema-location", f"{SCHEMAS}/{name}", "-"),
        ],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("role", ROLES)
def test_the_configuration_passes_freshets_own_checks(
    role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = rendered(role)
    text = manifests.data("-config")["freshet.yaml"]
    for mount in values_of(role).get("mounts", ()):
        for key in mount["keys"]:
            file = tmp_path / mount["path"].lstrip("/") / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("secret", encoding="utf-8")
        text = text.replace(mount["path"], str(tmp_path / mount["path"].lstrip("/")))
    for variable in values_of(role).get("secretEnv", ()):
        monkeypatch.setenv(variable["name"], "secret")
    config = Config.from_dict(yaml.safe_load(text))
    config.check_secrets_of_jobs()
    assert {"home": config.home_region}.get(role, config.region) == config.region

    tables = []
    for name, definition in manifests.data("-tables").items():
        file = tmp_path / name
        file.write_text(definition, encoding="utf-8")
        tables.append(load_table(file))
    assert tables
    if role != "home":
        assert region_settings(tables, config)["applies"] is (role == "destination")


def test_each_region_has_its_jobs() -> None:
    jobs = {role: set(rendered(role).jobs) for role in ROLES}
    assert jobs["home"] == {"eu-cpu-stl", "eu-cpu-hourly", "eu-job-multicast"}
    assert jobs["destination"] == jobs["waypoint"] == {"eu-job-region"}


@pytest.mark.parametrize("role", ROLES)
def test_jobs_run_what_the_image_has(role: str) -> None:
    image = stages_of((CHECKOUT / DOCKERFILE).read_text(encoding="utf-8"))[-1]
    tops = [target for _, target in copied_from_checkout(image)]
    tops += ["operators/target/freshet-flink.jar", ".venv/bin/python"]
    for job in rendered(role).jobs.values():
        texts = [*job["job"]["args"], job["job"]["jarURI"], *job["flinkConfiguration"].values()]
        texts += [word for each in containers_of(job) for word in each.get("command", ())]
        named = re.findall(r"(?:/opt/freshet/|(?<!\S)docker/)\S+", "\n".join(texts))
        paths = {path.removeprefix("/opt/freshet/") for path in named}
        assert {"docker/flink", "docker/prepare.py"} < paths
        for path in paths:
            assert any(path == top or path.startswith(f"{top}/") for top in tops), path
            assert path.startswith((".venv/", "operators/target/")) or (CHECKOUT / path).is_file()
    assert image.environment()["VIRTUAL_ENV"] == "/opt/freshet/.venv"
    (test,) = rendered(role).of("Pod")
    assert (CHECKOUT / test["spec"]["containers"][0]["command"][1]).is_file()


@pytest.mark.parametrize("role", ROLES)
def test_what_pods_read_is_mounted(role: str) -> None:
    manifests = rendered(role)
    config, tables = manifests.data("-config"), manifests.data("-tables")
    there = {f"/etc/freshet/{name}" for name in config}
    there |= {f"/etc/freshet/tables/{name}" for name in tables}
    names = {each["metadata"]["name"] for each in manifests.of("ConfigMap")}
    for job in manifests.jobs.values():
        volumes = {each["name"]: each for each in job["podTemplate"]["spec"]["volumes"]}
        for source in volumes["freshet-config"]["projected"]["sources"]:
            assert source["configMap"]["name"] in names
        for container in containers_of(job):
            mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
            assert set(mounts.values()) == volumes.keys()
            environment = {each["name"]: each.get("value") for each in container["env"]}
            assert environment["FRESHET_CONFIG"] in there
            assert (
                environment["FLINK_CONF_DIR"]
                == (job["flinkConfiguration"]["kubernetes.flink.conf.dir"])
            )
            for mount in values_of(role).get("mounts", ()):
                assert mount["path"] in mounts
        prepared = containers_of(job)[1]["command"]
        for words in (job["job"]["args"], prepared):
            read = [words[n + 1] for n, word in enumerate(words) if word in ("--table", "--config")]
            assert {path for path in read if path.startswith("/etc/")} <= there
        kind = prepared[2]
        assert job["job"]["args"][3] == f"/opt/freshet/jobs/{job_script(f'{kind}_job').name}"


def test_settings_of_flink_are_known_and_are_those_of_compose_but_for_the_place() -> None:
    composed = yaml.safe_load((CHECKOUT / FLINK_SETTINGS).read_text(encoding="utf-8"))
    for role in ROLES:
        for job in rendered(role).jobs.values():
            settings = job["flinkConfiguration"]
            for name in settings:
                assert name.startswith(REPORTER) or flink_knows(name), name
            place = re.compile(
                r"address|host|rpc\.port|process\.size|parallelism|checkpointing\..*dir"
            )
            kept = {name: str(value) for name, value in composed.items() if not place.search(name)}
            kept = {n: v.lower() if v in ("True", "False") else v for n, v in kept.items()}
            assert kept.items() <= settings.items()
            assert settings["high-availability.type"] == "kubernetes"
            assert settings["taskmanager.numberOfTaskSlots"] == "1"


def test_ports_are_flinks() -> None:
    settings = yaml.safe_load((CHECKOUT / FLINK_SETTINGS).read_text(encoding="utf-8"))
    rest, metrics = settings["rest.port"], settings[f"{REPORTER}port"]
    home = rendered("home")
    for job in home.jobs.values():
        (main,) = job["podTemplate"]["spec"]["containers"]
        assert main["name"] == MAIN
        assert main["ports"] == [{"name": "metrics", "containerPort": metrics}]
    (service,) = home.of("Service")
    assert [port["port"] for port in service["spec"]["ports"]] == [metrics]
    (monitor,) = home.of("ServiceMonitor")
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    (policy,) = home.of("NetworkPolicy")
    ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule.get("ports", ())]
    assert ports == [rest, metrics]
    (test,) = home.of("Pod")
    urls = test["spec"]["containers"][0]["command"][2:]
    assert set(urls) == {f"http://{name}-rest:{rest}" for name in home.jobs}


def test_selectors_choose_the_pods_of_jobs() -> None:
    home = rendered("home")
    selectors = [
        home.of("Service")[0]["spec"]["selector"],
        home.of("NetworkPolicy")[0]["spec"]["podSelector"]["matchLabels"],
    ]
    for name, job in home.jobs.items():
        labels = job["podTemplate"]["metadata"]["labels"]
        for selector in selectors:
            assert selector.items() <= labels.items()
        # What Flink itself adds.
        flinks = [labels | {"component": part} for part in ("jobmanager", "taskmanager")]
        chosen = {
            budget["metadata"]["name"].rpartition("-")[2]
            for budget in home.of("PodDisruptionBudget")
            for pod in flinks
            if budget["spec"]["selector"]["matchLabels"].items() <= pod.items()
        }
        alone = job["job"]["parallelism"] == 1
        assert chosen == ({"jobmanagers"} if alone else {"jobmanagers", "taskmanagers"}), name


def test_values_get_where_they_belong() -> None:
    jobs = rendered("home").jobs
    assert jobs["eu-cpu-stl"]["taskManager"]["resource"] == {"memory": "2g", "cpu": 1}
    assert jobs["eu-cpu-hourly"]["taskManager"]["resource"] == {"memory": "1728m", "cpu": 1}
    assert jobs["eu-cpu-stl"]["job"]["parallelism"] == 3
    assert jobs["eu-cpu-stl"]["job"]["args"][-2:] == ["--subtasks", "3"]
    region = rendered("destination").jobs["eu-job-region"]
    assert region["job"]["upgradeMode"] == "last-state"
    storage = "file:///var/lib/freshet/eu/savepoints"
    assert region["flinkConfiguration"]["execution.checkpointing.savepoint-dir"] == storage
    assert region["podTemplate"]["spec"]["volumes"][1]["persistentVolumeClaim"] == {
        "claimName": "eu-state"
    }
    (claim,) = rendered("destination").of("PersistentVolumeClaim")
    assert claim["metadata"]["name"] == "eu-state"
    values = changed(values_of("waypoint"), "suspended", True)
    values = changed(values, "regionJob", {"savepoint": "s3://x/y"})
    job = render(values).jobs["eu-job-region"]["job"]
    assert (job["state"], job["initialSavepointPath"]) == ("suspended", "s3://x/y")
    assert not rendered("waypoint").of("ServiceAccount")


def test_settings_of_flink_are_given_as_flink_reads_them() -> None:
    given = {
        "restart-strategy.exponential-delay.reset-backoff-threshold": 1048576,
        "state.backend.rocksdb.memory.write-buffer-ratio": 0.25,
        "execution.checkpointing.unaligned.enabled": True,
        "pipeline.name": "007",
    }
    (job,) = render(values_of("waypoint") | {"flinkConfiguration": given}).jobs.values()
    told = ["1048576", "0.25", "true", "007"]
    assert [job["flinkConfiguration"][name] for name in given] == told


def test_pods_have_room_beside_the_jvm() -> None:
    factors = [f"kubernetes.{part}manager.memory.limit-factor" for part in ("job", "task")]
    for job in rendered("home").jobs.values():
        assert [job["flinkConfiguration"][name] for name in factors] == ["1.5", "1.5"]
    given = {factors[1]: 3}
    (job,) = render(values_of("waypoint") | {"flinkConfiguration": given}).jobs.values()
    assert [job["flinkConfiguration"][name] for name in factors] == ["1.5", "3"]


def test_volumes_are_the_images_users_and_are_not_changed_at_each_start() -> None:
    for job in rendered("destination").jobs.values():
        context = job["podTemplate"]["spec"]["securityContext"]
        assert context["fsGroup"] == context["runAsUser"] == 10001
        assert context["fsGroupChangePolicy"] == "OnRootMismatch"


def test_pods_that_are_kept_from_the_network_reach_kubernetes() -> None:
    (policy,) = rendered("home").of("NetworkPolicy")
    allowed = [port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())]
    assert {53, 443, 6443, 9093, 6379} == set(allowed)


def test_the_guides_values_are_right_and_name_who_may_reach_the_pods() -> None:
    guide = (CHECKOUT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (text,) = [
        text for text in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL) if "mounts:" in text
    ]
    values = yaml.safe_load(text)
    assert render(values).jobs.keys() == {"eu-cpu-stl", "eu-job-multicast"}
    shipped = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values["networkPolicy"].items() <= shipped["networkPolicy"].items()


def test_the_notes_name_who_may_reach_the_pods() -> None:
    label = "kubernetes.io/metadata.name"
    names = {
        "operatorNamespace": {label: "flink-system"},
        "monitoringNamespace": {label: None, "team": "us", "tier": "1st"},
    }
    shown = _notes(values_of("home") | {"networkPolicy": names})
    assert re.search(rf"operator, from namespaces with +{label}=flink-system\n", shown)
    assert re.search(r"Prometheus, from namespaces with +team=us, tier=1st\n", shown)
    assert "network policy" not in _notes(values_of("waypoint"))


def _notes(values: dict[str, Any]) -> str:
    """What `helm install` says in the end."""
    done = run_helm(
        *("install", "eu", str(CHART), "--namespace", "features", "--dry-run=client"),
        *("--values", "-"),
        given=yaml.safe_dump(values),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:")[2]


def test_a_change_of_the_configuration_changes_the_jobs() -> None:
    def mark(values: dict[str, Any]) -> str:
        job = render(values).jobs["eu-job-region"]
        return str(job["podTemplate"]["metadata"]["annotations"]["freshet/configuration"])

    values = values_of("waypoint")
    assert mark(values) == mark(values)
    assert mark(values) != mark(changed(values, "config/topic_prefix", "test."))
    assert mark(values) != mark(changed(values, "tables/cpu_stl/definition/freshness_slo", "1m"))


def test_what_is_observed_comes_with_the_chart() -> None:
    observability = CHECKOUT / "observability"
    wanted = {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}
    manifests = render(values_of("home") | {"monitoring": wanted})
    assert _conform(manifests.text).returncode == 0, _conform(manifests.text).stdout
    (rule,) = manifests.of("PrometheusRule")
    text = (observability / "alerts.yaml").read_text(encoding="utf-8")
    assert rule["spec"] == yaml.safe_load(text)
    dashboards = manifests.data("-dashboards")
    assert dashboards.keys() == {file.name for file in (observability / "dashboards").iterdir()}
    for name, dashboard in dashboards.items():
        expected = (observability / "dashboards" / name).read_text(encoding="utf-8")
        assert json.loads(dashboard) == json.loads(expected)


def test_alerts_come_once_for_each_prometheus() -> None:
    def has_rules(role: str, **rule: object) -> bool:
        wanted = {"prometheusRule": {"enabled": True, **rule}}
        return bool(render(values_of(role) | {"monitoring": wanted}).of("PrometheusRule"))

    assert [role for role in ROLES if has_rules(role)] == ["home"]
    assert [role for role in ROLES if has_rules(role, releases="each")] == [*ROLES]
    assert not any(has_rules(role, enabled=False, releases="each") for role in ROLES)


def test_single_alerts_are_left_out_by_name() -> None:
    def names(left_out: list[str]) -> dict[str, list[str]]:
        wanted = {"prometheusRule": {"enabled": True, "leaveOut": left_out}}
        manifests = render(values_of("home") | {"monitoring": wanted})
        assert _conform(manifests.text).returncode == 0, _conform(manifests.text).stdout
        (rule,) = manifests.of("PrometheusRule")
        groups = rule["spec"]["groups"]
        return {each["name"]: [rule["alert"] for rule in each["rules"]] for each in groups}

    everything = names([])
    fewer = {name: list(alerts) for name, alerts in everything.items() if name != "planner"}
    fewer["freshness"].remove("CatchUpStuck")
    assert names(["PlansFail", "CatchUpStuck", "PlannerStale"]) == fewer
    assert names([each["alert"] for each in alert_rules()]) == {}
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    rule = schema["properties"]["monitoring"]["properties"]["prometheusRule"]["properties"]
    known = rule["leaveOut"]["items"]["enum"]
    assert known == [each["alert"] for each in alert_rules()], "a misspelt name is told"


def test_the_schema_of_the_values_has_each_field_of_the_configuration() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    config = schema["properties"]["config"]["properties"]
    # The operator starts the jobs, and the image has its Python.
    assert config.keys() | {"flink_rest", "flink_python"} == set(field_names())


def test_the_schema_of_the_values_allows_nothing_unknown() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    # What is Kubernetes' own, or checked elsewhere.
    free = {"affinity", "securityContext", "containerSecurityContext", "definition", "global"}

    def check(name: str, part: Any) -> None:
        if isinstance(part, dict):
            kinds = part.get("type", ())
            if kinds == "object" or "object" in kinds:
                assert "additionalProperties" in part or name in free, name
            for inner, each in part.items():
                check(inner, each)

    check("values", schema)


def test_versions_and_the_default_values_are_the_projects() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{chart["appVersion"]}"' in project
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    settings = yaml.safe_load((CHECKOUT / FLINK_SETTINGS).read_text(encoding="utf-8"))
    for name in ("jobManager", "taskManager"):
        assert values[name]["memory"] == settings[f"{name.lower()}.memory.process.size"]
