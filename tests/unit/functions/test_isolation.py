"""Goal: nothing that a feature function does harms other keys or the caller.

Method: real child processes; one batch holds misbehaving keys between good ones, and every good key
must be computed while each bad one fails with its own reason. A hang is cut by a short timeout.
"""

from __future__ import annotations

import logging
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from freshet.functions import FeatureFunction, Window, isolation
from freshet.functions.isolation import FunctionStartError, IsolatedFunction
from freshet.functions.limits import MAX_RETRY_AFTER_S, RateLimited
from freshet.functions.protocol import (
    ProtocolError,
    ResponseItem,
    Status,
    pack_request,
    unpack_response,
)
from freshet.values import Encoding, decode_payload
from tests.unit.functions import misbehaving
from tests.unit.functions.misbehaving import (
    HUGE_VALUE_NUMBERS,
    ChangesItsWindow,
    Counting,
    Limited,
    LimitedTogether,
    Marked,
    Misbehaving,
    MisbehavingTogether,
    Short,
    Threaded,
    Unloadable,
)

TIMEOUT_S = 1.0  # a good key must not need it on a machine that is busy with other things
GRACE_S = 0.5
DEADLINE_S = 30.0

FAILURES = {
    "raises": (Status.FAILED, "ValueError: no good"),
    "sleeps": (Status.TIMED_OUT, "longer than its timeout of 1000 ms; make it faster"),
    "loops": (Status.TIMED_OUT, "longer than its timeout of 1000 ms; make it faster"),
    "loops without signals": (Status.TIMED_OUT, "its process was killed"),
    "hangs in C": (Status.TIMED_OUT, "its process was killed"),
    "swallows interruptions": (Status.TIMED_OUT, "its process was killed"),
    "ends its process": (Status.FAILED, "its process ended with exit code 7"),
    "exits": (Status.FAILED, "SystemExit: 5"),
    "crashes": (Status.FAILED, "its process was ended by SIGSEGV"),
    "forks and ends": (Status.FAILED, "its process ended with exit code 3"),
    "kills its supervisor": (Status.FAILED, "its process ended"),
    "NaN": (Status.FAILED, "element 1 of 2 is nan"),
    "infinity": (Status.FAILED, "element 1 of 2 is inf"),
    "too large": (Status.FAILED, "no finite float32"),
    "NaN inside": (Status.FAILED, "value.a[1].b is nan"),
    "None": (Status.FAILED, "the value is None"),
    "matrix": (Status.FAILED, "shape (2, 2)"),
    "object": (Status.FAILED, "value is a object"),
}


@pytest.fixture(autouse=True, scope="module")
def _pickle_by_value() -> Iterator[None]:
    """As for a user's own module, which is not installed where the function runs."""
    cloudpickle.register_pickle_by_value(misbehaving)
    yield
    cloudpickle.unregister_pickle_by_value(misbehaving)


def isolated(function: FeatureFunction) -> IsolatedFunction:
    """With a timeout that tests of hangs can wait for."""
    return IsolatedFunction(function, timeout_s=TIMEOUT_S, grace_s=GRACE_S)


def window(key: str) -> Window:
    return Window(key, np.arange(4), np.arange(4.0), 3)


def compute(function: IsolatedFunction, *keys: str) -> list[ResponseItem]:
    response = function.call(pack_request([(f"<{key}>".encode(), window(key)) for key in keys]))
    items = unpack_response(response)
    assert [item.context for item in items] == [f"<{key}>".encode() for key in keys]
    return items


def vector(item: ResponseItem) -> list[float]:
    assert item.status == Status.OK, item.failure
    return list(decode_payload(item.encoding, item.payload))


def eventually_gone(pid: int) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("function_type", [Misbehaving, MisbehavingTogether])
def test_each_bad_key_fails_alone_with_its_reason(function_type: type[FeatureFunction]) -> None:
    keys = ["good 0"]
    for i, bad in enumerate(FAILURES):
        keys += [bad, f"good {i + 1}"]
    with isolated(function_type()) as function:
        results = dict(zip(keys, compute(function, *keys), strict=True))
        for key, item in results.items():
            if key.startswith("good"):
                assert vector(item) == [6.0], key
                continue
            status, reason = FAILURES[key]
            assert item.status == status, key
            assert item.encoding == Encoding.NONE
            assert reason in item.failure["reason"], key
            assert f"for key '{key}'" in item.failure["reason"]
            if status == Status.TIMED_OUT:
                assert item.compute_nanos >= TIMEOUT_S * 1e9
        assert vector(compute(function, "afterwards")[0]) == [6.0]


def test_stack_of_a_failure_names_the_line() -> None:
    with isolated(Misbehaving()) as function:
        raised, hung, crashed = compute(function, "raises", "hangs in C", "crashes")
        assert "ValueError: no good" in raised.failure["stack"]
        assert "in hold_the_interpreter_in_c" in hung.failure["stack"]
        assert "in crash" in crashed.failure["stack"]


def test_output_is_logged_and_corrupts_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="freshet.functions.output")
    with isolated(Misbehaving()) as function:
        items = compute(function, "a", "prints much", "b")
        assert [vector(item) for item in items] == [[6.0]] * 3
    assert "a raw line" in caplog.text
    assert "printed more than" in caplog.text


def test_a_huge_value_and_a_tree_come_back_whole() -> None:
    with IsolatedFunction(Misbehaving(), timeout_s=DEADLINE_S) as function:
        huge, tree = compute(function, "huge", "tree")
        assert len(vector(huge)) == HUGE_VALUE_NUMBERS
        assert tree.encoding == Encoding.AVRO
        assert decode_payload(tree.encoding, tree.payload) == misbehaving.VALUES["tree"]()


def test_keys_are_computed_together_where_the_function_can() -> None:
    with isolated(Marked()) as function:
        assert [vector(item)[0] for item in compute(function, "a", "b", "c")] == [1, 1, 1]
        assert vector(compute(function, "alone")[0])[0] == 0


def test_a_batch_of_wrong_length_is_computed_one_by_one() -> None:
    with isolated(Short()) as function:
        assert [vector(item) for item in compute(function, "a", "b")] == [[6.0], [6.0]]


def test_a_retry_sees_the_window_unchanged() -> None:
    with isolated(ChangesItsWindow()) as function:
        assert [vector(item) for item in compute(function, "a", "b")] == [[6.0], [6.0]]


def test_state_lives_until_the_process_is_replaced() -> None:
    with isolated(Counting()) as function:
        counts = [
            vector(item)[0] if item.status == Status.OK else None
            for item in compute(function, "a", "b", "ends its process", "c", "d")
        ]
        assert counts == [1, 2, None, 1, 2]
        assert vector(compute(function, "e")[0]) == [3]
        assert function.restarts == 1


def test_a_key_that_disables_the_alarm_does_not_unprotect_the_next() -> None:
    with isolated(Misbehaving()) as function:
        first, second = compute(function, "changes the alarm", "sleeps")
        assert vector(first) == [6.0]
        assert second.status == Status.TIMED_OUT
        assert function.restarts == 0, "the soft timeout should have been enough"


def test_the_soft_timeout_works_below_a_thread_that_blocks_signals() -> None:
    """As threads of a JVM do."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGABRT])
    try:
        function = isolated(Misbehaving())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with function:
        assert compute(function, "sleeps")[0].status == Status.TIMED_OUT
        assert function.restarts == 0


def test_a_parent_with_many_open_files() -> None:
    """As a TaskManager has; select() would fail above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with isolated(Misbehaving()) as function:
            bad, good = compute(function, "ends its process", "good")
            assert bad.status == Status.FAILED
            assert vector(good) == [6.0]
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_replacing_a_hung_process_ends_what_it_had_started(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with isolated(Misbehaving(pid_file=str(pid_file))) as function:
        (item,) = compute(function, "spawns")
        assert item.status == Status.TIMED_OUT
        assert eventually_gone(int(pid_file.read_text()))


def test_a_process_that_died_while_idle_blames_no_key() -> None:
    with isolated(Marked()) as function:
        pid = int(vector(compute(function, "a")[0])[1])
        os.kill(pid, 9)
        assert eventually_gone(pid)
        assert vector(compute(function, "b")[0])[1] != pid


def test_a_function_that_can_not_be_loaded_says_why() -> None:
    with pytest.raises(FunctionStartError, match="no module named left_pad"):
        isolated(Unloadable())


def test_loading_has_a_time_limit() -> None:
    class Slow(Misbehaving):
        def prepare(self) -> None:
            time.sleep(600)

    with pytest.raises(FunctionStartError, match=r"longer than 1 s.*prepare"):
        IsolatedFunction(Slow(), timeout_s=1, start_timeout_s=1)


def test_an_interpreter_that_does_not_exist_is_named() -> None:
    with pytest.raises(FunctionStartError, match="/no/python can't be run"):
        IsolatedFunction(Misbehaving(), timeout_s=1, python="/no/python")


def test_a_function_with_threads_is_loaded_in_each_process() -> None:
    with isolated(Threaded()) as function:
        assert vector(compute(function, "a")[0]) == [1.0], "a forked copy of a threaded process"
        assert compute(function, "ends its process")[0].status == Status.FAILED
        assert vector(compute(function, "b")[0]) == [1.0]


def test_requests_that_break_the_format_are_refused() -> None:
    with isolated(Misbehaving()) as function:
        with pytest.raises(ProtocolError):
            function.call(b"")
        with pytest.raises(ProtocolError, match="format 9"):
            function.call(b"\x09\x00\x00\x00\x00")
        assert unpack_response(function.call(pack_request([]))) == []


def test_close_ends_all_processes_and_is_idempotent() -> None:
    function = isolated(Marked())
    pid = int(vector(compute(function, "a")[0])[1])
    supervisor = function._child._process.pid
    function.close()
    function.close()
    assert eventually_gone(pid)
    assert eventually_gone(supervisor)
    with pytest.raises(RuntimeError, match="closed"):
        compute(function, "b")


PARENT = """
import sys, time
from freshet.functions import Aggregate
from freshet.functions.isolation import IsolatedFunction
function = IsolatedFunction(Aggregate(), timeout_s=600)
print(function._child._process.pid, flush=True)
time.sleep(600)
"""


def test_the_child_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as parent:
        assert parent.stdout is not None
        supervisor = int(parent.stdout.readline())
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        assert len(children) == 1
        parent.kill()
        parent.wait()
        assert eventually_gone(supervisor)
        assert eventually_gone(int(children[0]))


def test_default_python_is_found_inside_a_foreign_executable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = Path(isolation.default_python())
    monkeypatch.setattr(sys, "executable", "/usr/lib/jvm/bin/java")
    found = Path(isolation.default_python())
    assert found.exists()
    assert found.parent == expected.parent


def test_a_rate_limit_puts_off_its_key_and_all_that_follow() -> None:
    with isolated(Limited(calls_allowed=2, retry_after_s=60.0)) as function:
        items = compute(function, "a", "b", "c", "d")
        assert [item.status for item in items] == [Status.OK] * 2 + [Status.RATE_LIMITED] * 2
        assert items[2].retry_after_ms == 60_000
        assert 0 < items[3].retry_after_ms <= 60_000
        with pytest.raises(ValueError, match="did not fail"):
            _ = items[2].failure
        # The next batch is answered without a call while the time has not passed.
        (again,) = compute(function, "c")
        assert again.status == Status.RATE_LIMITED
        assert function.restarts == 0


def test_a_rate_limit_in_a_batch_puts_all_of_it_off() -> None:
    with isolated(LimitedTogether(calls_allowed=2, retry_after_s=60.0)) as function:
        assert {item.status for item in compute(function, "a", "b", "c")} == {Status.RATE_LIMITED}
        assert {item.status for item in compute(function, "a", "b")} == {Status.RATE_LIMITED}


@pytest.mark.parametrize("made", [Limited, LimitedTogether])
def test_after_the_pause_the_function_is_called_again(made: type[Limited]) -> None:
    with isolated(made(calls_allowed=0, retry_after_s=0.0)) as function:
        first = compute(function, "a", "b")
        assert first[0].status == Status.RATE_LIMITED
        assert first[0].retry_after_ms == 0
        assert [item.status for item in compute(function, "a", "b")] == [Status.OK] * 2


def test_a_retry_time_that_is_none_is_refused() -> None:
    for seconds in (-1, float("nan")):
        with pytest.raises(ValueError, match="at least 0"):
            RateLimited(seconds)
    assert RateLimited(float("inf")).retry_after_s == MAX_RETRY_AFTER_S
    assert pickle.loads(pickle.dumps(RateLimited(2))).retry_after_s == 2.0
