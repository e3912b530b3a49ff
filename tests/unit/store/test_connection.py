"""Goal: an online store that does not answer is told from one that refuses."""

from __future__ import annotations

import ssl

import pytest
from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    BusyLoadingError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from freshet.config import Config
from freshet.errors import NotAnsweringError
from freshet.store.connection import StoreUnavailableError, connect, unavailable


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (RedisConnectionError("Connection refused"), True),
        (RedisTimeoutError("no answer"), True),
        (BusyLoadingError("is loading the dataset"), True),
        (ClusterDownError("CLUSTERDOWN"), True),
        (ReadOnlyError("is a replica"), True),
        (OutOfMemoryError("used memory > maxmemory"), True),
        (AuthenticationError("invalid username-password pair"), False),
        (AuthenticationWrongNumberOfArgsError("wrong number of arguments"), False),
        (NoPermissionError("has no permissions"), False),
        (ResponseError("unknown command"), False),
    ],
)
def test_what_passes_by_itself_is_told_from_what_does_not(error: RedisError, passes: bool) -> None:
    told = unavailable(Redis(host="cache", port=6379), error)
    assert isinstance(told, StoreUnavailableError)
    assert isinstance(told, NotAnsweringError) is passes


def test_a_certificate_that_is_not_trusted_stays_so() -> None:
    error = RedisConnectionError("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError()
    told = unavailable(Redis(host="cache", port=6379), error)
    assert not isinstance(told, NotAnsweringError)
    assert "redis_ca" in str(told)


def test_a_cluster_that_is_away_is_told_without_its_password() -> None:
    config = Config(
        kafka_bootstrap="127.0.0.1:1",
        redis={"local:home": "redis://me:hunter2@127.0.0.1:1"},
        redis_cluster=True,
    )
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1") as raised:
        connect(config)
    assert isinstance(raised.value, NotAnsweringError)
    assert "hunter2" not in str(raised.value)
