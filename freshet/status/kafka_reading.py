"""What home's Kafka tells: the jobs' reports, and how far the tables' topics have come."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from freshet.avro import AvroError, decode
from freshet.config import Config
from freshet.errors import FreshetError
from freshet.multicast.standing import Heard, Reports
from freshet.topic_reading import TopicTail
from freshet.topics import progress_topic

PARTITIONS_AGE_S_MAX = 30.0
"""How many partitions a topic has is asked again after this; it may get more."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SILENT = {"log_level": "0"}  # what goes wrong is told by the snapshot, not on standard error


class KafkaReader:
    """Reads reports as they come, and the ends of topics; not safe to share between threads."""

    def __init__(self, config: Config, timeout_s: float) -> None:
        """Describes the reader; it connects when it is first asked.

        Args:
            config: of the deployment.
            timeout_s: seconds without an answer after which the broker counts as gone.

        Raises:
            ConfigError: a secret is not there any more.
        """
        properties = config.kafka_client_properties(config.home_region)
        self.reports = Reports()
        self.tables: set[str] = set()
        """Every table that a job has reported of."""

        self._where = properties["bootstrap.servers"]
        self._timeout_s = timeout_s
        self._progress = TopicTail(properties, progress_topic(config).name, timeout_s=timeout_s)
        self._admin = AdminClient(properties | _SILENT)
        self._partitions: dict[str, tuple[float, int]] = {}

    def read_reports(self) -> None:
        """Takes in the reports that have come since the last time.

        Raises:
            FreshetError: the broker does not answer.
        """
        for message in self._progress.new():
            try:
                name, record = decode(message.value() or b"")
            except AvroError:
                continue
            if record.get("table"):
                self.tables.add(record["table"])
            if name == "RegionReport":
                self.reports.take(Heard(message.timestamp()[1], record))

    def ends(self, topics: Iterable[str]) -> dict[str, int]:
        """Records that were ever written to each of the topics that there are.

        Raises:
            FreshetError: the broker does not answer.
        """
        try:
            partitions = {topic: self._partition_count(topic) for topic in topics}
            asked = {
                TopicPartition(topic, partition): OffsetSpec.latest()
                for topic, count in partitions.items()
                for partition in range(count)
            }
            if not asked:
                return {}
            ends = {topic: 0 for topic, count in partitions.items() if count}
            answers = self._admin.list_offsets(asked, request_timeout=self._timeout_s)
            for place, answer in answers.items():
                ends[place.topic] += answer.result(self._timeout_s).offset
        except (KafkaException, TimeoutError) as error:
            self._partitions.clear()  # a topic may have been deleted
            what = error.args[0].str() if isinstance(error, KafkaException) else "no answer"
            raise FreshetError(
                f"the ends of topics cannot be read from Kafka at {self._where}: {what}; check"
                " that the broker runs"
            ) from error
        return ends

    def _partition_count(self, topic: str) -> int:
        """0 if there is no such topic."""
        now_s = time.monotonic()
        if not _TOPIC.fullmatch(topic):
            return 0  # a report may name any table, and brokers refuse such a name
        asked_s, count = self._partitions.get(topic, (0.0, 0))
        if topic not in self._partitions or now_s - asked_s > PARTITIONS_AGE_S_MAX:
            listed = self._admin.list_topics(topic, timeout=self._timeout_s)
            count = len(listed.topics[topic].partitions)
            self._partitions[topic] = (now_s, count)
        return count

    def close(self) -> None:
        """Closes the connections."""
        self._progress.close()
