"""A Feast client that takes orders as JSON lines. Runs in Feast's environment, not in ours.

::

    python feast_worker.py FOLDER REDIS_URL
    {"do": "write", "keys": ["vm-0", ...]}       -> {"seconds": ...}
    {"do": "read", "keys": [...], "repeats": 9}  -> {"seconds": [...]}
    {"do": "version"}                            -> {"feast": "...", "redis": "..."}
"""

import datetime
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FLOATS = 32


def make_store(folder: Path, redis_url: str) -> Any:
    """A feature store with one view of 32 floats."""
    import pandas as pd
    from feast import Entity, FeatureStore, FeatureView, Field, FileSource, RepoConfig, ValueType
    from feast.types import Float32

    address = urlsplit(redis_url)
    config = RepoConfig(
        project="bench",
        registry=str(folder / "registry.db"),
        provider="local",
        online_store={
            "type": "redis",
            "connection_string": f"{address.hostname}:{address.port},db={address.path[1:]}",
        },
        offline_store={"type": "file"},
        entity_key_serialization_version=3,
    )
    store = FeatureStore(config=config)
    names = [f"f{i}" for i in range(FLOATS)]
    now = datetime.datetime.now(datetime.UTC)
    source_file = folder / "source.parquet"
    pd.DataFrame({"vm": ["-"], "event_timestamp": [now]} | {name: [0.0] for name in names}).astype(
        dict.fromkeys(names, "float32")
    ).to_parquet(source_file)
    entity = Entity(name="vm", join_keys=["vm"], value_type=ValueType.STRING)
    view = FeatureView(
        name="view",
        entities=[entity],
        ttl=datetime.timedelta(days=1),
        schema=[Field(name=name, dtype=Float32) for name in names],
        source=FileSource(path=str(source_file), timestamp_field="event_timestamp"),
    )
    store.apply([entity, view])
    return store


def write(store: Any, keys: list[str]) -> dict[str, Any]:
    """Writes a row for each key, in batches as Feast's materialization does."""
    import numpy as np
    import pandas as pd

    values = np.random.default_rng(1).random((len(keys), FLOATS), dtype=np.float32)
    frame = pd.DataFrame(values, columns=[f"f{i}" for i in range(FLOATS)])
    frame["vm"] = keys
    frame["event_timestamp"] = datetime.datetime.now(datetime.UTC)
    started = time.perf_counter()
    for first in range(0, len(keys), 10_000):
        store.write_to_online_store("view", frame.iloc[first : first + 10_000])
    return {"seconds": time.perf_counter() - started}


def read(store: Any, keys: list[str], repeats: int) -> dict[str, Any]:
    """Reads all 32 features of the keys, so many times."""
    features = [f"view:f{i}" for i in range(FLOATS)]
    rows = [{"vm": key} for key in keys]
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        response = store.get_online_features(features=features, entity_rows=rows)
        seconds.append(time.perf_counter() - started)
    found = response.to_dict()["f0"]
    if len(found) != len(keys) or None in found:
        raise RuntimeError("Feast did not find every key")
    return {"seconds": seconds}


def main() -> None:
    """Answers orders until the input ends."""
    # Feast prints as it goes; the answers have a stream of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ["FEAST_USAGE"] = "False"
    store = make_store(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        order = json.loads(line)
        action = order.pop("do")
        if action == "write":
            answer = write(store, **order)
        elif action == "read":
            answer = read(store, **order)
        else:
            answer = {name: importlib.metadata.version(name) for name in ("feast", "redis")}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
