"""Reads of 32 floats for 1 to 1,000 keys: our client, a bare MGET, and Feast's client.

Also the bytes of Redis memory that a key takes in each layout.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from redis import Redis
from redis import __version__ as redis_py_version

from benchmarks.context import Context
from benchmarks.feast_environment import Feast, feast
from benchmarks.figures import Aim, Figure, take_turns
from benchmarks.servers import config_of, database, redis_server, server_version, used_memory
from freshet import Aggregate, FeatureTable, Points
from freshet.client import Client
from freshet.store.layout import key_name, pack_value
from freshet.version import Version

FLOATS = 32
TABLE = FeatureTable(name="bench", function=Aggregate(), window=Points(8))

_BATCH = 1_000
_CALLS = {1: 400, 10: 300, 100: 100, 1_000: 30}
_FEAST_CALLS = {1: 60, 10: 40, 100: 15, 1_000: 7}


def run(context: Context) -> list[Figure]:
    """All clients read the same keys of one Redis, in turns."""
    keys = [f"vm-{i:07d}" for i in range(10_000 if context.quick else 100_000)]
    with redis_server(context, "reads-redis") as url:
        redis = Redis.from_url(url)
        memory = [_freshet_memory(redis, keys, context), _hash_memory(url, keys, context)]
        feast_url = database(url, 2)
        with feast(context, feast_url, context.scratch / "feast.log") as baseline:
            memory.append(_feast_memory(baseline, redis, keys, context))
            versions = baseline.ask(do="version")
            note = (
                f"{server_version(redis)}; redis-py {redis_py_version} (Feast:"
                f" {versions['redis']}); Feast {versions['feast']}"
            )
            with Client(config_of(url), tables=[TABLE]) as client:
                reads = list(_reads(client, redis, baseline, keys, context, note))
    ours, hashes, theirs = memory
    about = f"{len(keys):,} keys; {note}"
    aimed = dataclasses.replace(ours, aim=Aim(270), note=about)
    compared = [dataclasses.replace(other, baseline=aimed) for other in (theirs, hashes)]
    return [*reads, aimed, *compared]


def _reads(
    client: Client,
    redis: Redis,
    baseline: Feast,
    keys: Sequence[str],
    context: Context,
    note: str,
) -> Iterator[Figure]:
    chosen = random.Random(20_261_120)
    for count, calls in _CALLS.items():
        context.say(f"reading {count:,} keys")
        subjects = _subjects(client, redis, baseline, chosen.sample(keys, count), calls)
        samples = take_turns(subjects, context.rounds)
        what = f"{count:,} key" + "s" * (count > 1)
        bare = Figure(f"bare MGET of {what}", "ms", samples["bare"], note="bytes, not decoded")
        aim = Aim(3.0) if count == 1_000 else None
        ours = Figure(
            f"get_many of {what}",
            "ms",
            samples["arrays"],
            bare,
            aim,
            f"then the values [n, 32] and the statuses; {note}",
        )
        yield ours
        yield Figure(
            f"get_many of {what}, as single features",
            "ms",
            samples["features"],
            bare,
            note="a Feature object for each key",
        )
        yield bare
        yield Figure(
            f"Feast, {what}",
            "ms",
            samples["feast"],
            ours,
            note="get_online_features, without to_dict",
        )


def _subjects(
    client: Client, redis: Redis, baseline: Feast, keys: list[str], calls: int
) -> dict[str, Callable[[], float]]:
    names = [key_name("", TABLE.name, key) for key in keys]

    def arrays() -> None:
        batch = client.get_many(TABLE.name, keys)
        assert batch.values.shape == (len(keys), FLOATS)
        assert batch.statuses[0] == "PRESENT"

    def features() -> None:
        assert all(f.status == "PRESENT" for f in client.get_many(TABLE.name, keys))

    def bare() -> None:
        values: list[bytes | None] = redis.mget(names)  # type: ignore[assignment]
        assert None not in values

    def theirs() -> float:
        answer = baseline.ask(do="read", keys=keys, repeats=_FEAST_CALLS[len(keys)])
        return float(1_000 * statistics.median(answer["seconds"]))

    return {
        "arrays": lambda: _median_ms(arrays, calls),
        "bare": lambda: _median_ms(bare, calls),
        "features": lambda: _median_ms(features, calls),
        "feast": theirs,
    }


def _median_ms(call: Callable[[], None], calls: int) -> float:
    seconds = []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return 1_000 * statistics.median(seconds)


# Memory.


def _freshet_memory(redis: Redis, keys: list[str], context: Context) -> Figure:
    context.say("filling Redis in Freshet's layout")
    now = int(time.time() * 1_000)
    vectors = np.random.default_rng(1).random((len(keys), FLOATS), dtype=np.float32)
    before = used_memory(redis)
    for batch in _batches(zip(keys, vectors, strict=True)):
        pipeline = redis.pipeline(transaction=False)
        for key, vector in batch:
            value = pack_value(vector, Version(now * 1_000, 1), now, now)
            pipeline.set(key_name("", TABLE.name, key), value)
        pipeline.execute()
    return _bytes_per_key("Redis memory, Freshet", redis, before, len(keys))


def _hash_memory(url: str, keys: list[str], context: Context) -> Figure:
    context.say("filling Redis with hashes of 32 fields")
    redis = Redis.from_url(database(url, 1))
    vectors = np.random.default_rng(1).random((len(keys), FLOATS), dtype=np.float32)
    before = used_memory(redis)
    for batch in _batches(zip(keys, vectors, strict=True)):
        pipeline = redis.pipeline(transaction=False)
        for key, vector in batch:
            fields = {f"f{i}": number.tobytes() for i, number in enumerate(vector)}
            pipeline.hset(key_name("", TABLE.name, key), mapping=fields)
        pipeline.execute()
    figure = _bytes_per_key("Redis memory, hash of 32 fields", redis, before, len(keys))
    redis.flushdb()
    return figure


def _feast_memory(baseline: Feast, redis: Redis, keys: list[str], context: Context) -> Figure:
    context.say("filling Redis through Feast")
    before = used_memory(redis)
    baseline.ask(do="write", keys=keys)
    return _bytes_per_key("Redis memory, Feast", redis, before, len(keys))


def _batches(items: Iterable[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    remaining = iter(items)
    while batch := list(itertools.islice(remaining, _BATCH)):
        yield batch


def _bytes_per_key(name: str, redis: Redis, before: int, keys: int) -> Figure:
    return Figure(name, "B/key", ((used_memory(redis) - before) / keys,))
