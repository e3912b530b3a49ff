"""Where the servers' programs are: made by ``make setup``, or named in the environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from freshet.errors import StackError

CHECKOUT = Path(__file__).resolve().parents[2]
"""Root of the checkout that this package is installed from (editable)."""

QUICK_JVM = ("-XX:TieredStopAtLevel=1",)
"""For a JVM that lives for minutes at most: it gains less from the optimising compiler than that
takes from it (measured on 2 cores: half a core for a minute)."""


def servers_directory() -> Path:
    """Folder of the embedded servers; ``FRESHET_SERVERS`` overrides it."""
    return Path(os.environ.get("FRESHET_SERVERS") or CHECKOUT / ".servers")


def redis_server() -> Path:
    """The redis-server program; ``FRESHET_REDIS_SERVER`` overrides the embedded one.

    Raises:
        StackError: there is none.
    """
    named = os.environ.get("FRESHET_REDIS_SERVER")
    if named:
        found = shutil.which(named)
        if found is None:
            raise StackError(f"FRESHET_REDIS_SERVER={named} is no program; correct or unset it")
        return Path(found)
    return _require(servers_directory() / "redis" / "redis-server")


def kafka_class_path() -> str:
    """Class path of the Kafka broker.

    Raises:
        StackError: the jars are not there.
    """
    return str(_require(servers_directory() / "kafka") / "*")


def java() -> str:
    """The java program, of ``JAVA_HOME`` or else on the PATH.

    Raises:
        StackError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home) / "bin" / "java" if home else None
    if candidate is not None and candidate.is_file():
        return str(candidate)
    found = shutil.which("java")
    if found is None:
        raise StackError("no java found; install JDK 17, or set JAVA_HOME to one")
    return found


def flink_home() -> Path:
    """Root of the Flink distribution: ``FLINK_HOME``, else the one inside PyFlink's package.

    Raises:
        StackError: there is none.
    """
    named = os.environ.get("FLINK_HOME")
    if named:
        return _require(Path(named) / "bin" / "flink").parents[1]
    # Asking importlib would import PyFlink, which takes a second.
    import importlib.util

    spec = importlib.util.find_spec("pyflink")
    if spec is None or spec.origin is None:
        raise StackError("PyFlink is not installed; run 'make setup'")
    return _require(Path(spec.origin).parent / "bin" / "flink").parents[1]


def flink_jar() -> Path:
    """The jar with Freshet's operators; ``FRESHET_FLINK_JAR`` overrides the one just built.

    Raises:
        StackError: it is not there.
    """
    named = os.environ.get("FRESHET_FLINK_JAR")
    return _require(Path(named) if named else CHECKOUT / "operators/target/freshet-flink.jar")


def job_script(name: str) -> Path:
    """A job's script, such as ``feature_job``; ``FRESHET_JOBS`` overrides the folder.

    Raises:
        StackError: it is not there.
    """
    named = os.environ.get("FRESHET_JOBS")
    return _require((Path(named) if named else CHECKOUT / "jobs") / f"{name}.py")


def _require(path: Path) -> Path:
    if not path.exists():
        raise StackError(f"{path} is missing; run 'make setup'")
    return path
