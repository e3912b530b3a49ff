"""Holds the servers' settings against each other, and against what the servers know."""

from __future__ import annotations

import functools
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from freshet.config import Config
from freshet.errors import ConfigError
from freshet.stack.kafka import KafkaBroker, KafkaOptions
from freshet.stack.layout import CHECKOUT, flink_home
from tests.deployment.files import (
    COMPOSE,
    DESTINATION,
    DOCKERFILE,
    FLINK_SETTINGS,
    GRAFANA_DASHBOARDS,
    GRAFANA_SOURCE,
    HOME,
    IMAGE_ROOT,
    PROMETHEUS,
    Files,
    in_checkout,
    stages_of,
)
from tests.deployment.parts import (
    kafka_settings,
    listeners_of,
    mount_targets,
    mounts_of,
    own_services,
    published_ports,
    services_of,
)

REPORTER = "metrics.reporter.prom."
_ADDRESSES = ("listener", "log.dirs", "quorum")
_PROMETHEUS_KEYS = {"global", "rule_files", "scrape_configs"}
_SCRAPE_KEYS = {"job_name", "static_configs", "dns_sd_configs"}


def kafka_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Broker settings that are unknown, or other than those that the tests run with."""
    settings = kafka_settings(compose)
    tested = KafkaBroker(1, 2, Path(), Path(), KafkaOptions(), "")._settings()
    problems = [f"kafka: nobody knows {name}" for name in settings if name not in tested]
    problems += [
        f"kafka: {name} is {value}, and {tested[name]} in the embedded stack"
        for name, value in settings.items()
        if name in tested and not any(word in name for word in _ADDRESSES) and tested[name] != value
    ]
    mounted = mount_targets(compose["services"]["kafka"])
    if settings.get("log.dirs") not in mounted:
        problems.append("kafka: log.dirs is on no volume")
    listeners = listeners_of(settings["listeners"])
    advertised = listeners_of(settings["advertised.listeners"])
    kafka = compose["services"]["kafka"]
    published = published_ports(kafka)
    if published.get(listeners["EXTERNAL"][1]) != advertised["EXTERNAL"]:
        problems.append("kafka: the EXTERNAL listener is not where it is advertised")
    if advertised["INTERNAL"] != ("kafka", listeners["INTERNAL"][1]):
        problems.append("kafka: the INTERNAL listener is not where it is advertised")
    if f"/{advertised['INTERNAL'][1]}" not in kafka["healthcheck"]["test"][-1]:
        problems.append("kafka: the health check asks another port")
    return problems


def flink_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Flink settings that Flink does not know, or that fit neither the image nor its volumes."""
    settings = yaml.safe_load(files[FLINK_SETTINGS])
    known = {
        f"{REPORTER}{name}" for name in ("factory.class", "port", "filterLabelValueCharacters")
    }
    problems = [
        f"{FLINK_SETTINGS}: Flink does not know {name}"
        for name in settings
        if name not in known and not flink_knows(name)
    ]
    shipped = yaml.safe_load((flink_home() / "conf/config.yaml").read_text(encoding="utf-8"))
    options = settings["env.java.opts.all"].split()
    if options != shipped["env"]["java"]["opts"]["all"].split():
        problems.append(f"{FLINK_SETTINGS}: env.java.opts.all is not the distribution's")
    if settings["taskmanager.numberOfTaskSlots"] != 1:
        problems.append(f"{FLINK_SETTINGS}: a TaskManager may have one slot (docs/running.md)")
    if settings["classloader.parent-first-patterns.additional"] != "pemja":
        problems.append(f"{FLINK_SETTINGS}: pemja is not loaded once (docs/running.md)")
    mounted = mount_targets(compose["services"]["jobmanager"]) & mount_targets(
        compose["services"]["taskmanager"]
    )
    for name in ("execution.checkpointing.dir", "execution.checkpointing.savepoint-dir"):
        if not any(urlsplit(settings[name]).path.startswith(f"{path}/") for path in mounted):
            problems.append(f"{FLINK_SETTINGS}: {name} is on no volume that both have")
    venv = stages_of(files[DOCKERFILE])[-1].environment().get("VIRTUAL_ENV")
    for name in ("python.executable", "python.client.executable"):
        if settings[name] != f"{venv}/bin/python":
            problems.append(f"{FLINK_SETTINGS}: {name} is not the image's")
    for name in ("jobmanager.rpc.address", "rest.address"):
        if settings[name] != "jobmanager":
            problems.append(f"{FLINK_SETTINGS}: {name} is not the service jobmanager")
    read = f"{IMAGE_ROOT}/{Path(FLINK_SETTINGS).parent}"
    problems += [
        f"{name}: Flink's client does not read {FLINK_SETTINGS}"
        for name in sorted(own_services(compose))
        if compose["services"][name]["environment"].get("FLINK_CONF_DIR") != read
    ]
    return problems + _flink_port_problems(files, compose, settings)


def _flink_port_problems(
    files: Files, compose: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[str]:
    services, problems = compose["services"], []
    rest, metrics = settings["rest.port"], settings[f"{REPORTER}port"]
    if rest not in published_ports(services["jobmanager"]):
        problems.append(f"jobmanager: Flink's REST port {rest} is not published")
    for name, port in (("jobmanager", rest), ("taskmanager", metrics)):
        if urlsplit(services[name]["healthcheck"]["test"][-1]).port != port:
            problems.append(f"{name}: the health check does not ask port {port}")
    exposed = stages_of(files[DOCKERFILE])[-1].all("EXPOSE")
    expected = {str(settings["jobmanager.rpc.port"]), str(rest), str(metrics)}
    if {word for each in exposed for word in each.words} != expected:
        problems.append(f"Dockerfile: EXPOSE is not {', '.join(sorted(expected))}")
    return problems


def flink_knows(name: str) -> bool:
    """Whether a setting is declared by one of the distribution's classes of options."""
    # A text in a class file: its tag, its length and itself.
    return b"\x01" + struct.pack(">H", len(name)) + name.encode() in _option_classes()


@functools.cache
def _option_classes() -> bytes:
    home, found = flink_home(), []
    for jar in (*home.glob("lib/flink-dist-*.jar"), *home.glob("opt/flink-python-*.jar")):
        with zipfile.ZipFile(jar) as classes:
            names = (name for name in classes.namelist() if name.endswith("Options.class"))
            found += [classes.read(name) for name in names if "/shaded/" not in name]
    return b"".join(found)


def config_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Regions' configurations that are wrong, or name servers that are not there."""
    problems, configs = [], []
    for path in (HOME, DESTINATION):
        try:
            configs.append(Config.from_dict(yaml.safe_load(files[path]), path))
        except ConfigError as error:
            problems += error.problems
    if problems:
        return problems
    settings = yaml.safe_load(files[FLINK_SETTINGS])
    internal = listeners_of(kafka_settings(compose)["advertised.listeners"])["INTERNAL"]
    redis = {(name, 6379) for name, service in services_of(compose) if "redis:" in service["image"]}
    for config in configs:
        brokers = {config.kafka_bootstrap}
        brokers |= {region.kafka_bootstrap for region in config.regions.values()}
        if brokers != {f"{internal[0]}:{internal[1]}"}:
            problems.append(f"{config.region}: its broker is not the service kafka")
        for url in config.redis.values():
            if (urlsplit(url).hostname, urlsplit(url).port) not in redis:
                problems.append(f"{config.region}: {url} is no Redis of {COMPOSE}")
        if config.flink_rest != f"http://jobmanager:{settings['rest.port']}":
            problems.append(f"{config.region}: flink_rest is not the service jobmanager")
        if config.flink_python != settings["python.executable"]:
            problems.append(f"{config.region}: flink_python is not Flink's python.executable")
    home, destination = configs
    if {home.home_region} != {destination.home_region} or destination.region not in home.regions:
        problems.append("the two configurations do not name the same regions")
    if set(home.redis.values()) & set(destination.redis.values()):
        problems.append("both regions have the same Redis")
    used = {in_checkout(word) for word in compose["services"]["submit"]["command"]}
    problems += [f"submit: {path} is not used" for path in (HOME, DESTINATION) if path not in used]
    return problems


def prometheus_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Scrape settings that are misspelt, or name what is not there."""
    settings, service = yaml.safe_load(files[PROMETHEUS]), compose["services"]["prometheus"]
    unknown = settings.keys() - _PROMETHEUS_KEYS
    targets: list[tuple[str, int]] = []
    for scrape in settings.get("scrape_configs", ()):
        unknown |= scrape.keys() - _SCRAPE_KEYS
        for group in scrape.get("static_configs", ()):
            pairs = (target.rsplit(":", 1) for target in group["targets"])
            targets += [(host, int(port)) for host, port in pairs]
        for group in scrape.get("dns_sd_configs", ()):
            targets += [(host, group["port"]) for host in group["names"]]
    problems = [f"{PROMETHEUS}: unknown field {name}" for name in sorted(unknown)]
    port = yaml.safe_load(files[FLINK_SETTINGS])[f"{REPORTER}port"]
    if sorted(targets) != [("jobmanager", port), ("taskmanager", port)]:
        problems.append(f"{PROMETHEUS}: does not scrape port {port} of all of Flink's processes")
    flags = dict(word.removeprefix("--").split("=", 1) for word in service["command"])
    mounts = {target: source for source, target in mounts_of(service)}
    folder, _, name = flags["config.file"].rpartition("/")
    if f"{mounts.get(folder, '')}/{name}" != f"./{PROMETHEUS}":
        problems.append("prometheus: its config.file is not mounted")
    if flags["storage.tsdb.path"] not in mounts:
        problems.append("prometheus: its storage is on no volume")
    for path in settings["rule_files"]:
        if not _mounted(service, path).is_file():
            problems.append(f"prometheus: {path} is not mounted")
    return problems


def _mounted(service: Mapping[str, Any], path: str) -> Path:
    """What of the checkout a service has at a path; a path that is not there if it has nothing."""
    for source, target in mounts_of(service):
        if path == target or path.startswith(f"{target}/"):
            return CHECKOUT / source / path.removeprefix(target).lstrip("/")
    return CHECKOUT / "nothing-is-mounted"


def grafana_problems(files: Files, compose: Mapping[str, Any]) -> list[str]:
    """Dashboards or a source of their data that Grafana is told of, and that are not there."""
    service, problems = compose["services"]["grafana"], []
    (port,) = published_ports(compose["services"]["prometheus"])
    for source in yaml.safe_load(files[GRAFANA_SOURCE])["datasources"]:
        if source["url"] != f"http://prometheus:{port}":
            problems.append(f"{GRAFANA_SOURCE}: {source['url']} is not the service prometheus")
    for path in (GRAFANA_SOURCE, GRAFANA_DASHBOARDS):
        target = "/etc/grafana/provisioning" + path.removeprefix("docker/grafana")
        if _mounted(service, target) != CHECKOUT / path:
            problems.append(f"grafana: {path} is not mounted where Grafana looks for it")
    for provider in yaml.safe_load(files[GRAFANA_DASHBOARDS])["providers"]:
        folder = provider["options"]["path"]
        if not list(_mounted(service, folder).glob("*.json")):
            problems.append(f"{GRAFANA_DASHBOARDS}: no dashboard is in {folder}")
    home = service["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    if not _mounted(service, home).is_file():
        problems.append(f"grafana: {home} is not mounted")
    (inner,) = published_ports(service)
    if urlsplit(service["healthcheck"]["test"][-1]).port != inner:
        problems.append(f"grafana: the health check does not ask port {inner}")
    return problems
