"""What a failed submission says, out of the pages that Flink's client prints."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from freshet import Config
from freshet.errors import ConfigError
from freshet.stack.layout import job_script
from freshet.submission import PreparedJob, _environment, _reason, _Script, submit_together
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


def test_the_clients_environment_does_not_override_the_jobs_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FRESHET_TOPIC_PREFIX", "other.")
    monkeypatch.setenv("FRESHET_HOME", str(tmp_path))
    environment = _environment(None, tmp_path)
    assert "FRESHET_TOPIC_PREFIX" not in environment
    assert environment["FRESHET_HOME"] == str(tmp_path)


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


def prepared(name: str, flink: str, savepoint: str | None = None) -> PreparedJob:
    config = Config(
        kafka_bootstrap="127.0.0.1:1",
        redis={"local:home": "redis://127.0.0.1:1"},
        flink_rest=flink,
    )
    script = _Script("region_job", (Path("t.yaml"),), 1, savepoint)
    return PreparedJob(name, "t", script, config, [])


def test_jobs_of_one_client_have_one_flink_and_no_savepoint() -> None:
    jobs = [
        prepared("a", "http://127.0.0.1:1"),
        prepared("b", "http://127.0.0.1:2"),
        prepared("c", "http://127.0.0.1:1", savepoint="/savepoints/7"),
    ]
    with pytest.raises(ConfigError) as raised:
        submit_together(jobs)
    assert sorted(problem.split()[1] for problem in raised.value.problems) == ["b", "c"]


def test_a_client_of_several_jobs_tells_their_arguments_apart() -> None:
    jobs_of = runpy.run_path(str(job_script("together")))["jobs_of"]
    arguments = ["--script", "a.py", "--table", "t", "--script", "b.py", "--config", "c"]
    assert jobs_of(arguments) == [["a.py", "--table", "t"], ["b.py", "--config", "c"]]
    with pytest.raises(ValueError, match="--table is of no job"):
        jobs_of(["--table", "t"])
    for lacking in ([], ["--script"], ["--script", "a.py", "--script"]):
        with pytest.raises(ValueError, match="needs one"):
            jobs_of(lacking)
