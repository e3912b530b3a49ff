"""The environment that a job's script composes its job in."""

from __future__ import annotations

import os

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from freshet.errors import ConfigError


def job_environment(settings: Configuration) -> StreamExecutionEnvironment:
    """The environment that Flink's client gives a job.

    Args:
        settings: that the job needs, over those that the client has read.

    Raises:
        ConfigError: the job would take no checkpoints.
    """
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    if not env.get_checkpoint_config().is_checkpointing_enabled():
        # The cluster may well have it: Flink's client decides, and by default it reads a
        # config.yaml that is not the cluster's.
        read = os.environ.get("FLINK_CONF_DIR", "conf of its distribution")
        raise ConfigError(
            [
                "execution.checkpointing.interval is not set, so a failure would lose every window;"
                f" set it, to 10 s say, in the config.yaml that Flink's client reads (in {read};"
                " FLINK_CONF_DIR names another folder). What the cluster's own says of it does not"
                " count"
            ],
            "Flink's settings",
        )
    return env
