"""Asks a broker whether it takes a client, and tells at once and in full why it does not.

The libraries try again for as long as they may, and then tell of a timeout. What does not pass by
itself, a login that is refused or a certificate that nobody vouches for, is known after the first
attempt: librdkafka tells it to a callback, which is what is heard here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from freshet.errors import FreshetError, NotAnsweringError

DEADLINE_S = 30.0
"""How long a broker may take to answer at all."""

_ATTEMPT_S = 0.5

_CERTIFICATE = (
    "name the authority of the broker's certificate in {properties}.ssl.ca.location, and the host"
    " that it is made out to in {bootstrap}"
)
_FIXES = {
    KafkaError._AUTHENTICATION: (
        "correct sasl.mechanism, sasl.username and sasl.password in {properties}"
    ),
    KafkaError._SSL: _CERTIFICATE,
    KafkaError._INVALID_ARG: "correct {properties}",
}
"""What does not pass by itself, and what to do about it."""

# A broker that wants another certificate of the client, or one at all, ends the connection.
_ALERT = re.compile(r"alert (bad certificate|certificate required|unknown ca|certificate unknown)")
_CLIENT_CERTIFICATE = (
    "set ssl.certificate.location and ssl.key.location in {properties} to a certificate whose"
    " authority the broker trusts"
)
_OTHER_PROTOCOL = "TLS or no TLS as security.protocol in {properties} says"

_DETAIL = re.compile(r" \(after \d+ms in state \w+\)|^\w+://\S+: ")


class BrokerRefusesError(FreshetError):
    """A broker refuses a client, or the client the broker; trying again changes nothing."""


class Access:
    """What a client of librdkafka meets at a broker; :meth:`on_error` is its ``error_cb``.

    Args:
        bootstrap: of the broker.
        fields: names of the configuration's fields for its address and its properties.
    """

    def __init__(
        self, bootstrap: str, fields: tuple[str, str] = ("kafka_bootstrap", "kafka_properties")
    ) -> None:
        self._bootstrap = bootstrap
        self._fields = {"bootstrap": fields[0], "properties": fields[1]}
        self.refusal: str | None = None
        """Why the broker cannot be used, and the fix; None while nothing speaks against it."""

    def on_error(self, error: KafkaError) -> None:
        """Takes an error; those that pass are forgotten."""
        told = error.str()
        fix = _CLIENT_CERTIFICATE if _ALERT.search(told) else _FIXES.get(error.code())
        if fix is not None:
            why = _DETAIL.sub("", told)
            self.refusal = (
                f"Kafka at {self._bootstrap} cannot be used: {why}; {fix.format(**self._fields)}"
            )

    def check(self) -> None:
        """Tells of a refusal.

        Raises:
            BrokerRefusesError: there was one.
        """
        if self.refusal is not None:
            raise BrokerRefusesError(self.refusal)

    def client(self, kind: Any, properties: Mapping[str, Any]) -> Any:
        """A client of librdkafka whose errors are heard here.

        Args:
            kind: ``Consumer``, ``Producer`` or ``AdminClient``.
            properties: with the secrets.

        Raises:
            BrokerRefusesError: the properties are wrong, such as a key's password.
        """
        try:
            return kind({**properties, "error_cb": self.on_error})
        except KafkaException as error:
            self.on_error(error.args[0])
            self.check()
            raise

    def metadata(
        self, client: Any, topic: str | None = None, deadline_s: float = DEADLINE_S
    ) -> Any:
        """The broker's answer to the first question.

        Args:
            client: from :meth:`client`.
            topic: to ask for; None for all.
            deadline_s: how long the broker may take, seconds.

        Raises:
            BrokerRefusesError: it refuses.
            NotAnsweringError: it does not answer in time.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                return client.list_topics(topic, timeout=min(_ATTEMPT_S, deadline_s))
            except KafkaException as error:
                client.poll(0)
                self.check()
                if time.monotonic() > deadline:
                    raise NotAnsweringError(
                        f"Kafka at {self._bootstrap} does not answer ({error.args[0].str()}); check"
                        f" {self._fields['bootstrap']}, that the broker runs, and that this port"
                        f" speaks {_OTHER_PROTOCOL.format(**self._fields)}"
                    ) from error


def check_access(properties: Mapping[str, str], fields: tuple[str, str]) -> None:
    """Makes sure that a broker takes a client with these properties.

    Args:
        properties: of a librdkafka client, with the secrets.
        fields: as for :class:`Access`.

    Raises:
        BrokerRefusesError: it refuses.
        NotAnsweringError: it does not answer in time.
    """
    access = Access(properties["bootstrap.servers"], fields)
    client = access.client(AdminClient, {**properties, "log_level": "0"})
    access.metadata(client)
