"""Takes snapshots for as long as somebody watches, through restarts of what is watched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType

from freshet.config import Config
from freshet.errors import FreshetError
from freshet.status.reader import PATIENCE_S, StatusReader
from freshet.status.snapshot import Snapshot


class Following:
    """Snapshots of the deployment that the configuration names now.

    A stack that is started anew has other ports, which are in its new configuration: it is loaded
    again whenever something does not answer.
    """

    def __init__(self, load: Callable[[], Config]) -> None:
        """Loads the configuration.

        Args:
            load: the configuration of the home region.

        Raises:
            ConfigError: it is wrong, or there is none.
        """
        self._load = load
        self._reader = StatusReader(load())

    def __enter__(self) -> Following:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reader.close()

    def snapshot(self, patience_s: float = PATIENCE_S) -> Snapshot:
        """The next snapshot; what cannot be read is among its problems.

        Args:
            patience_s: how long it waits for servers, seconds.
        """
        snapshot = self._reader.snapshot(patience_s)
        if snapshot.problems:
            # There may be none at the moment: then the old one is as good.
            with contextlib.suppress(FreshetError):
                self._change_to(self._load())
        return snapshot

    def _change_to(self, config: Config) -> None:
        if config != self._reader.config:
            reader = StatusReader(config)
            self._reader.close()
            self._reader = reader
