"""Goal: the model's forecasts and errors are what their definitions say, on real readings.

Method: features are fitted by the shipped STL on the data of the demo; every number is computed a
second time, one key and one reading at a time. Reading and feedback go through a real Redis and a
real Kafka.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import numpy as np
import pytest
import redis as redis_py
from confluent_kafka import Consumer
from statsmodels.tsa.seasonal import STL

from freshet import Client, Config, FeatureTable, Points, STLDecomposition, Version
from freshet.demo.model import Floats, Model, forecast, naive_errors
from freshet.demo.readings import Readings
from freshet.stack.kafka import KafkaBroker
from freshet.stack.redis import RedisServer
from freshet.store.layout import key_name, pack_value
from freshet.store.writing import write_if_newer
from freshet.topics import create_missing_topics, topics_of_table

KEYS = 3
HORIZON = 12
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def readings() -> Readings:
    return Readings.load()


@pytest.fixture(scope="module")
def features(readings: Readings) -> Floats:
    """STL features of the first window of the first keys [KEYS, 1 + period]."""
    window = readings.values[: 3 * readings.period, :KEYS]
    fits = [STL(column, period=readings.period).fit() for column in window.T]
    return np.stack([np.r_[fit.trend[-1], fit.seasonal[-readings.period :]] for fit in fits])


def test_naive_error_is_the_mean_step(readings: Readings) -> None:
    history = readings.values[:864]
    errors = naive_errors(history)
    for key in (0, 17, 128):
        steps = [abs(history[i, key] - history[i - 1, key]) for i in range(1, 864)]
        assert errors[key] == pytest.approx(sum(steps) / len(steps))


def test_naive_error_refuses_readings_that_never_change() -> None:
    with pytest.raises(ValueError, match="column 1 never change"):
        naive_errors(np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]]))


def test_forecast_is_trend_plus_season_of_the_hour(features: Floats) -> None:
    ages = np.array([0, 12, 500])
    said = forecast(features, ages, HORIZON)
    assert said.shape == (HORIZON, KEYS)
    period = features.shape[1] - 1
    for key, age in enumerate(ages.tolist()):
        for step in range(HORIZON):
            season = features[key, 1 + (age + step) % period]
            assert said[step, key] == pytest.approx(features[key, 0] + season)


@pytest.fixture
def table(kafka: KafkaBroker, redis_server: RedisServer) -> Iterator[tuple[Config, FeatureTable]]:
    table = FeatureTable(name="model_test", function=STLDecomposition(288), window=Points(864))
    config = Config(kafka_bootstrap=kafka.bootstrap, redis={"local:home": redis_server.url})
    create_missing_topics(config, topics_of_table(table.to_dict()))
    yield config, table
    store = redis_py.Redis.from_url(redis_server.url)
    for name in store.scan_iter(key_name("", table.name, "*")):
        store.delete(name)


@pytest.mark.integration
def test_model_reads_forecasts_and_sends_each_error_back(
    readings: Readings, features: Floats, table: tuple[Config, FeatureTable]
) -> None:
    config, definition = table
    first = 3 * readings.period
    # The first key's feature is an hour old, the last key has none.
    event_times = [readings.time_ms(first - 13), readings.time_ms(first - 1)]
    versions = [Version(time_ms * 1_000, 1) for time_ms in event_times]
    store = redis_py.Redis.from_url(config.home_redis)
    write_if_newer(
        store,
        [
            (
                key_name("", definition.name, readings.keys[i]),
                pack_value(features[i], versions[i], event_time=event_times[i], computed_at=1),
            )
            for i in range(2)
        ],
    )
    keys, scale = readings.keys[:KEYS], np.array([1.0, 2.0, 4.0])
    times_ms = [readings.time_ms(row) for row in range(first, first + HORIZON)]
    actual = readings.values[first : first + HORIZON, :KEYS]
    now_ms = readings.time_ms(first - 1)
    with Client(config, tables=[definition], clock=lambda: now_ms) as client:
        model = Model(client, definition.name, keys, scale, readings.step_ms, HORIZON)
        said = model.predict()
        errors = model.learn(said, actual, times_ms)

    assert said.versions == [*versions, None]
    np.testing.assert_array_equal(said.staleness_ms, [3_600_000, 0, np.nan])
    expected = forecast(np.float32(features), np.array([12, 0, 0]), HORIZON)
    np.testing.assert_allclose(said.values[:, :2], expected[:, :2])
    np.testing.assert_allclose(errors[:, :2], np.abs(expected - actual)[:, :2] / scale[:2])
    assert np.isnan(said.values[:, 2]).all()
    assert np.isnan(errors[:, 2]).all()

    sent = consume(config, "feedback.model_test", 2 * HORIZON)
    answered = {(f["key"], f["ts"]): (f["version"], f["error"]) for f in sent}
    assert answered == {
        (keys[k], time_ms): (str(versions[k]), pytest.approx(errors[h, k]))
        for k in range(2)
        for h, time_ms in enumerate(times_ms)
    }


@pytest.mark.integration
def test_model_without_any_feature_answers_nothing(table: tuple[Config, FeatureTable]) -> None:
    config, definition = table
    with Client(config, tables=[definition]) as client:
        model = Model(client, definition.name, ["a", "b"], np.ones(2), 300_000, HORIZON)
        said = model.predict()
        errors = model.learn(said, np.ones((HORIZON, 2)), list(range(HORIZON)))
    assert said.versions == [None, None]
    assert np.isnan(errors).all()


def consume(config: Config, topic: str, count: int) -> list[dict[str, object]]:
    """The first records of a topic, decoded."""
    consumer = Consumer(
        config.kafka_client_properties()
        | {"group.id": "model-test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    records: list[dict[str, object]] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(records) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                records.append(json.loads(message.value()))
    finally:
        consumer.close()
    return records
