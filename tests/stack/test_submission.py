"""What a failed submission says, out of the pages that Flink's client prints."""

from __future__ import annotations

import pytest

from freshet.submission import _reason
from freshet.topics import topics_of_table

PYTHON_FAILURE = """\
Traceback (most recent call last):
  File "/x/jobs/feature_job.py", line 9, in <module>
    main()
freshet.errors.ConfigError: table: 1 problem: name is missing
org.apache.flink.client.program.ProgramAbortException: java.lang.RuntimeException: Python process
\tat org.apache.flink.client.python.PythonDriver.main(PythonDriver.java:134)
Caused by: java.lang.RuntimeException: Python process exits with code: 1
"""

JAVA_FAILURE = """\
 The program finished with the following exception:
org.apache.flink.client.program.ProgramInvocationException: The main method caused an error
Caused by: java.util.concurrent.ExecutionException: something
Caused by: java.net.ConnectException: Connection refused: /127.0.0.1:9
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (PYTHON_FAILURE, "ConfigError: table: 1 problem: name is missing"),
        (JAVA_FAILURE, "java.net.ConnectException: Connection refused: /127.0.0.1:9"),
    ],
)
def test_the_reason_is_what_a_user_can_act_on(output: str, reason: str) -> None:
    assert _reason(output) == reason


def test_a_tables_topics() -> None:
    definition = {
        "source": {"topic": "trades"},
        "feedback_topic": "p.feedback.t",
        "changes_topic": "p.changes.t",
        "progress_topic": "p.progress",
        "dead_letters_topic": "p.dead-letters.t",
        "max_value_bytes": 2_000_000,
    }
    topics = {topic.name: topic for topic in topics_of_table(definition, partitions=3)}
    assert set(topics) == {
        "trades",
        "p.feedback.t",
        "p.changes.t",
        "p.progress",
        "p.dead-letters.t",
    }
    assert topics["trades"].partitions == topics["p.changes.t"].partitions == 3
    assert topics["p.changes.t"].settings["cleanup.policy"] == "compact"
    # A change event carries its value whole.
    assert int(topics["p.changes.t"].settings["max.message.bytes"]) > 2_000_000
    assert topics["trades"].settings == {}
