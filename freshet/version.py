"""Version of a feature value: a hybrid logical clock and the id of the writer that made it."""

from __future__ import annotations

from typing import NamedTuple

_MAX_ORIGIN = 0xFFFF
_MAX_TIMESTAMP = 2**63 - 1


class Version(NamedTuple):
    """Ordered by timestamp, then origin; the larger wins everywhere (Ekko §4.2, definition 1).

    Being a tuple, a version compares, hashes and unpacks as one.
    """

    timestamp_micros: int
    """Hybrid logical clock, microseconds; strictly increasing within one origin and key group."""

    origin: int
    """Id of the writer, 0 to 65535."""

    def __str__(self) -> str:
        """The external form, ``<timestamp_micros>.<origin>``, as in feedback and in the CLI."""
        return f"{self.timestamp_micros}.{self.origin}"

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parses the external form.

        Raises:
            ValueError: the text is not ``<timestamp_micros>.<origin>``.
        """
        timestamp, _, origin = text.partition(".")
        numeric = text.isascii() and timestamp.isdigit() and origin.isdigit()
        if numeric and int(timestamp) <= _MAX_TIMESTAMP and int(origin) <= _MAX_ORIGIN:
            return cls(int(timestamp), int(origin))
        raise ValueError(
            f"version {text!r} is not '<microseconds>.<origin 0 to 65535>'; send back the version "
            "that the client returned with the feature"
        )


NO_VERSION = Version(0, 0)
"""The version of a key that has never been computed; smaller than every real one."""
