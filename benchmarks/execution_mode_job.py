"""A job whose Python operator does nothing but tell how long a call to it takes.

Submitted by ``execution_mode.py``. The time of a call is the distance of two calls' beginnings, so
it holds all that is on the way: the source, the hand-over from Java and back, the isolated child.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.functions import MapFunction, RuntimeContext
from pyflink.java_gateway import get_gateway

from freshet.functions import FeatureFunction, Window
from freshet.functions.isolation import IsolatedFunction
from freshet.functions.protocol import count_items, pack_request
from freshet.functions.serialization import dump_function

WINDOW_POINTS = 36
TIMEOUT_S = 30.0


class NoOp(FeatureFunction):
    """Costs nothing, so that only the way to it is measured."""

    def compute(self, window: Window) -> npt.NDArray[np.float32]:
        """Three zeros."""
        return np.zeros(3, np.float32)


class TimedOperator(MapFunction):
    """Writes the times of its calls to a file when the last one has come.

    Args:
        calls: how many there will be.
        out: the file: JSON pairs of keys in the batch and the call's beginning in seconds.
        function: pickled function to call in its own process; None to answer at once.
    """

    def __init__(self, calls: int, out: str, function: bytes | None) -> None:
        self._calls = calls
        self._out = out
        self._pickled = function
        self._function: IsolatedFunction | None = None
        self._times: list[tuple[int, float]] = []

    def open(self, runtime_context: RuntimeContext) -> None:
        """Starts the function's process."""
        if self._pickled is not None:
            self._function = IsolatedFunction(self._pickled, timeout_s=TIMEOUT_S)

    def map(self, value: bytes) -> bytes:
        """Passes a batch through the function, if there is one."""
        request = bytes(value)
        self._times.append((count_items(request), time.perf_counter()))
        answer = request[:8] if self._function is None else self._function.call(request)
        if len(self._times) == self._calls:
            draft = Path(f"{self._out}.tmp")
            draft.write_text(json.dumps(self._times), encoding="utf-8")
            draft.rename(self._out)
        return answer

    def close(self) -> None:
        """Ends the function's process."""
        if self._function is not None:
            self._function.close()


def batches(sizes: dict[int, int]) -> list[bytes]:
    """Encoded batches: for each number of keys, so many of them."""
    times = np.arange(WINDOW_POINTS, dtype=np.int64)
    values = np.ones(WINDOW_POINTS)
    encoded = []
    for keys, count in sizes.items():
        windows = [
            (b"context of a key", Window(f"vm-{i}", times, values, WINDOW_POINTS))
            for i in range(keys)
        ]
        encoded += [pack_request(windows)] * count
    return encoded


def main() -> None:
    """Submits the job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=("thread", "process"), required=True)
    parser.add_argument("--isolated", action="store_true")
    parser.add_argument("--sizes", required=True, help="JSON: keys in a batch to number of calls")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()

    settings = Configuration()
    settings.set_string("python.execution-mode", arguments.mode)
    settings.set_string("python.fn-execution.bundle.size", "1")
    settings.set_string("pipeline.object-reuse", "true")
    settings.set_string("parallelism.default", "1")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    requests = batches({int(keys): calls for keys, calls in json.loads(arguments.sizes).items()})
    binary = Types.PRIMITIVE_ARRAY(Types.BYTE())
    operator = TimedOperator(
        len(requests), arguments.out, dump_function(NoOp()) if arguments.isolated else None
    )
    jvm = get_gateway().jvm
    # PyFlink's own from_collection cannot take bytes.
    elements = jvm.java.util.ArrayList()
    for request in requests:
        elements.add(request)
    source = env._j_stream_execution_environment.fromCollection(
        elements, binary.get_java_type_info()
    )
    answers = DataStream(source).map(operator, output_type=binary)
    # In a chain, as in the feature job; the sink drops what comes.
    sink = jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    answers._j_data_stream.sinkTo(sink)
    env.execute(f"benchmark-{arguments.mode}")


if __name__ == "__main__":
    main()
