"""The deployment's files say the same of versions, paths, ports and variables, and it is true.

Goal: what no Docker engine is needed for is known before anybody starts one.

Method: docker-compose.yml against the Compose Specification's schema, then each file against the
others and against what the project pins and its configuration knows. Each mistake of a list is made
on purpose and must be told.
"""

from __future__ import annotations

import subprocess

import pytest

from freshet.config import Config
from freshet.multicast.building import region_settings
from freshet.stack.layout import CHECKOUT
from freshet.table import load_table
from tests.deployment import files
from tests.deployment.checks import problems_of
from tests.deployment.files import compose_of, is_ignored, read_files, variables_of

TASK_MANAGER = "  taskmanager:\n    <<: *freshet\n"
BUILD = "    build: {context: ., dockerfile: docker/Dockerfile}\n"
MISTAKES = [
    # Keys and values of docker-compose.yml.
    (files.COMPOSE, "healthcheck:", "healtcheck:", "healtcheck"),
    (files.COMPOSE, "    interval: 5s\n", "    intervall: 5s\n", "intervall"),
    (files.COMPOSE, "condition: service_healthy", "condition: service_well", "service_well"),
    (files.COMPOSE, "profiles: [core]", "profiles: core", "core"),
    (files.COMPOSE, "restart: unless-stopped", "restart: 3", "3"),
    (files.COMPOSE, "services:\n", "services: [\n", "YAML|expected"),
    # Versions.
    (files.COMPOSE, "apache/kafka:4.1.2", "apache/kafka:4.1.1", "4.1.1"),
    (files.COMPOSE, "apache/kafka:4.1.2", "apache/kafka:latest", "exact"),
    (files.COMPOSE, "redis:7.0.15-bookworm", "redis:7.4.1-bookworm", "7.4.1"),
    (files.COMPOSE, "prom/prometheus:v3.13.5", "prom/prometheus:v3.5.0", "v3.13.5"),
    (files.COMPOSE, "grafana/grafana:12.2.0", "grafana/grafana:latest", "exact"),
    (files.COMPOSE, "image: freshet:0.1.0", "image: freshet:0.2.0", "0.2.0"),
    (files.DOCKERFILE, "python:3.11.14-slim", "python:3.12.1-slim", "3.12.1"),
    (files.DOCKERFILE, "python:3.11.14-slim", "python:3.11.13-slim", "different Pythons"),
    (files.DOCKERFILE, "eclipse-temurin:17.0.16_8", "eclipse-temurin:21.0.8_9", "21.0.8"),
    (files.DOCKERFILE, "maven:3.9.11-", "maven:3-", "exact"),
    (files.COMPOSE, TASK_MANAGER, f"{TASK_MANAGER}{BUILD}", "several services build"),
    # Variables.
    (files.COMPOSE, "FRESHET_CONFIG:", "FRESHET_CONFIGURATION:", "FRESHET_CONFIGURATION"),
    (files.COMPOSE, "FRESHET_CONFIG:", "FRESHET_KAFKA_BOOTSTRAPS:", "KAFKA_BOOTSTRAPS"),
    (files.COMPOSE, "KAFKA_NODE_ID:", "KAFKA_NODE_IDS:", "node.ids"),
    (files.COMPOSE, 'LOG_RETENTION_MS: "-1"', 'LOG_RETENTION_MS: "1"', "log.retention.ms"),
    (files.COMPOSE, "KAFKA_NODE_ID:", "KAFKA_SSL_KEY_PASSWORD: x\n      KAFKA_NODE_ID:", "secret"),
    (files.COMPOSE, "${TABLES:-", "${TABLE:-", "TABLE with"),
    # Volumes and paths.
    (files.COMPOSE, "flink-state:/var", "flink-stat:/var", "flink-stat"),
    (files.COMPOSE, "kafka-data:/var/lib/kafka/data", "kafka-data:/var/kafka", "log.dirs"),
    (files.COMPOSE, "flink-state:/var/lib/freshet", "flink-state:/var/lib/flink", "own"),
    (files.COMPOSE, "./docker/config:", "./docker/configs:", "configs"),
    (files.COMPOSE, "docker/config:ro", "docker/confs:ro", "mounted as"),
    (files.COMPOSE, "python, docker/healthy.py", "python, docker/health.py", "health.py"),
    (files.COMPOSE, "- --tables", "- --table", "--table"),
    (files.COMPOSE, "- docker/submit.py", "- docker/submits.py", "submits.py"),
    (files.COMPOSE, "docker/config/destination.yaml", "docker/config/home.yaml", "not used"),
    (files.FLINK_SETTINGS, "/var/lib/freshet/savepoints", "/var/freshet/savepoints", "savepoint"),
    (files.DOCKERFILE, "COPY jobs jobs", "COPY job jobs", "job is not"),
    (files.DOCKERFILE, "COPY docker docker\n", "", "not in the image"),
    (files.DOCKERFILE, "--from=jar /opt/freshet", "--from=jars /opt/freshet", "jars"),
    (files.DOCKERFILE, "USER freshet\n", "", "root"),
    (files.DOCKERFILE, "RUN chmod -R a+rX", "RUN ls", "owner alone"),
    (files.DOCKERFILE, "freshet jobs examples docker\n", "freshet jobs docker\n", "examples may"),
    (files.DOCKERFILE, "VIRTUAL_ENV=/opt/freshet/.venv", "VIRTUAL_ENV=/opt/venv", "environment"),
    (files.DOCKERFILE, "-DskipTests package", "package", "Makefile does"),
    (files.DOCKERFILE, "make .venv/.complete", "pip install .", "make"),
    (files.IGNORE, "!schemas\n", "", "schemas"),
    # Ports and addresses.
    (files.COMPOSE, "127.0.0.1:9092:9092", "127.0.0.1:9094:9092", "EXTERNAL"),
    (files.COMPOSE, "INTERNAL://kafka:19092", "INTERNAL://broker:19092", "INTERNAL"),
    (files.COMPOSE, "tcp/127.0.0.1/19092", "tcp/127.0.0.1/19093", "health check"),
    (files.COMPOSE, "127.0.0.1:8081:8081", "127.0.0.1:8081:8082", "8081"),
    (files.COMPOSE, "127.0.0.1:6380:6379", "127.0.0.1:6381:6379", "6381"),
    (files.COMPOSE, "localhost:9249/metrics", "localhost:9250/metrics", "9249"),
    (files.FLINK_SETTINGS, "reporter.prom.port: 9249", "reporter.prom.port: 9250", "9250"),
    (files.FLINK_SETTINGS, "rest.port: 8081", "rest.port: 8082", "8082"),
    (files.PROMETHEUS, "jobmanager:9249", "jobmanger:9249", "9249"),
    (files.PROMETHEUS, "dns_sd_configs", "dns_sd_config", "dns_sd_config"),
    (files.PROMETHEUS, "/etc/freshet/alerts.yaml", "/etc/freshet/alarms.yaml", "alarms"),
    (files.PROMETHEUS, "rule_files", "rules_files", "rules_files|rule_files"),
    (files.GRAFANA_SOURCE, "prometheus:9090", "prometheus:9091", "9091"),
    (files.GRAFANA_DASHBOARDS, "/etc/freshet/dashboards", "/etc/freshet/boards", "no dashboard"),
    (files.COMPOSE, "/etc/grafana/provisioning", "/etc/grafana/provision", "looks for"),
    (files.COMPOSE, "localhost:3000/api", "localhost:3001/api", "grafana: the health check"),
    (files.COMPOSE, "dashboards/features.json", "dashboards/feature.json", "feature.json"),
    (files.COMPOSE, "/etc/prometheus/prometheus.yml", "/etc/prometheus.yml", "config.file"),
    # Settings of Flink and of Freshet.
    (files.COMPOSE, "docker/flink-conf\n", "docker/conf\n", "does not read"),
    (files.FLINK_SETTINGS, "numberOfTaskSlots: 1", "numberOfTaskSlots: 2", "slot"),
    (files.FLINK_SETTINGS, "taskmanager.numberOfTaskSlots", "taskmanager.slots", "TaskSlots"),
    (files.FLINK_SETTINGS, "restart-strategy.type", "restart-strategy.kind", "restart-strategy"),
    (files.FLINK_SETTINGS, "additional: pemja", "additional: py4j", "pemja"),
    (files.FLINK_SETTINGS, "  --add-opens=java.base/java.util=ALL-UNNAMED\n", "", "opts"),
    (files.HOME, "kafka_bootstrap: kafka:19092", "kafka_bootstraps: kafka:19092", "bootstraps"),
    (files.HOME, "redis://redis-home:6379", "redis://redis:6379", "no Redis"),
    (files.HOME, "redis://redis-home:6379", "redis://redis-destination:6379", "same Redis"),
    (files.HOME, "http://jobmanager:8081", "http://jobmanager:8082", "flink_rest"),
    (files.DESTINATION, "home_region: aws:eu-west-1", "home_region: aws:eu-west-2", "eu-west-2"),
    # The guide.
    (files.GUIDE, "| `kafka` | core |", "| `kafka` | cores |", "cores"),
    (files.GUIDE, "127.0.0.1:6379/0", "127.0.0.1:6378/0", "6378"),
    (
        files.GUIDE,
        "exec jobmanager freshet status",
        "exec jobmanagers freshet status",
        "jobmanagers",
    ),
    (files.GUIDE, "| `/var/lib/freshet` |", "| `/var/lib/flink` |", "flink-state"),
]


def test_the_files_agree() -> None:
    assert problems_of(read_files()) == []


@pytest.mark.parametrize(("path", "right", "wrong", "told"), MISTAKES)
def test_a_mistake_is_told(path: str, right: str, wrong: str, told: str) -> None:
    texts = read_files()
    assert right in texts[path], "the mistake can be made"
    texts[path] = texts[path].replace(right, wrong)
    problems = "\n".join(_problems_or_error(texts))
    assert any(part in problems for part in told.split("|")), problems


def _problems_or_error(texts: dict[str, str]) -> list[str]:
    """A setting that is gone is a mistake, too."""
    try:
        return problems_of(texts)
    except KeyError as error:
        return [f"{error} is missing"]


def test_variables_have_their_defaults_and_dollars_are_kept() -> None:
    text = read_files()[files.COMPOSE]
    assert variables_of(text) == {"TABLES": "./docker/tables", "TASKMANAGERS": "3"}
    given = compose_of(text, {"TABLES": "/mine", "TASKMANAGERS": "5"})
    assert "/mine:/opt/freshet/docker/tables:ro" in given["services"]["submit"]["volumes"]
    assert given["services"]["taskmanager"]["deploy"]["replicas"] == "5"
    assert "$answer" in given["services"]["redis-home"]["healthcheck"]["test"][-1]


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        (".git/config", True),
        (".env", True),
        (".venv/bin/python", True),
        (".servers/redis/redis-server", True),
        ("tests/conftest.py", True),
        ("operators/target/freshet-flink.jar", True),
        ("docker/config/ca.pem", True),
        ("freshet/config.py", False),
        ("connectors/src/main/resources/write_if_newer.lua", False),
    ],
)
def test_nothing_but_what_is_needed_is_sent_to_the_build(path: str, ignored: bool) -> None:
    assert is_ignored(path, read_files()[files.IGNORE]) is ignored


def test_every_file_that_is_copied_is_in_git_and_links_stay_inside() -> None:
    final = files.stages_of(read_files()[files.DOCKERFILE])[-1]
    tops = [source for source, _ in files.copied_from_checkout(final)]
    listed = subprocess.run(
        ["git", "ls-files", "-s", "--", *tops], cwd=CHECKOUT, capture_output=True, text=True
    ).stdout.splitlines()
    paths = [line.split("\t")[1] for line in listed]
    for top in tops:
        assert any(path == top or path.startswith(f"{top}/") for path in paths), top
    links = [path for path, line in zip(paths, listed, strict=True) if line.startswith("120000")]
    assert links, "the package links to schemas and to a script"
    for link in links:
        target = (CHECKOUT / link).resolve().relative_to(CHECKOUT.resolve())
        assert any(target.is_relative_to(top) for top in tops), f"{link} -> {target}"


def test_the_shipped_tables_are_for_both_regions() -> None:
    home, destination = (
        Config.load(CHECKOUT / path, {}) for path in (files.HOME, files.DESTINATION)
    )
    tables = [load_table(file) for file in sorted((CHECKOUT / "docker/tables").iterdir())]
    assert tables
    for table in tables:
        assert table.regions == (home.home_region, destination.region)
    assert region_settings(tables, destination)["applies"]


def test_the_script_of_the_commands_can_be_run() -> None:
    assert (CHECKOUT / "docker/flink").stat().st_mode & 0o111
    done = subprocess.run(["docker/flink"], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "say what to run" in done.stderr
