"""A real Kafka, Redis and Flink on loopback, without Docker or root, for development and tests.

The same jobs and clients that run here run on a cluster: only the configuration differs.
"""

from freshet.stack.flink import FlinkOptions
from freshet.stack.kafka import KafkaOptions
from freshet.stack.redis import RedisOptions
from freshet.stack.stack import Stack, StackOptions

__all__ = ["FlinkOptions", "KafkaOptions", "RedisOptions", "Stack", "StackOptions"]
