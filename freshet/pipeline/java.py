"""Freshet's Java classes as seen from a job script."""

from __future__ import annotations

from typing import Any

from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway


def java_class(name: str) -> Any:
    """A class of the Freshet jar, by its name below ``dev.freshet``.

    Raises:
        RuntimeError: the jar is not on the class path of this job.
    """
    loader = get_gateway().jvm.Thread.currentThread().getContextClassLoader()
    full_name = f"dev.freshet.{name}"
    try:
        loader.loadClass(full_name)
    except Exception as error:
        raise RuntimeError(
            f"class {full_name} is not on the class path; pass the Freshet jar to the job "
            "(flink run --jarfile, or pipeline.jars)"
        ) from error
    found: Any = get_gateway().jvm
    for part in full_name.split("."):
        found = getattr(found, part)
    return found


def java_environment(env: StreamExecutionEnvironment) -> Any:
    """The Java environment behind a Python one."""
    return env._j_stream_execution_environment


def java_stream(stream: DataStream) -> Any:
    """The Java stream behind a Python one."""
    return stream._j_data_stream


def python_stream(java: Any) -> DataStream:
    """A Python stream around a Java one."""
    return DataStream(java)
