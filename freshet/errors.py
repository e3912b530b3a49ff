"""What Freshet raises. Each message says what is wrong, where, and the fix, in one line."""

from __future__ import annotations

from collections.abc import Iterable


class FreshetError(Exception):
    """Base of every error that a caller may want to catch; the CLI prints it as one line."""


class ConfigError(FreshetError):
    """A configuration or a table definition is wrong; holds every problem, not only the first."""

    def __init__(self, problems: Iterable[str], subject: str = "configuration") -> None:
        """Keeps the problems.

        Args:
            problems: one sentence each: what is wrong, where, and the fix.
            subject: what was checked, such as ``"table definition tables/cpu.yaml"``.
        """
        self.problems: list[str] = list(problems)
        self.subject = subject
        super().__init__(self._message())

    def _message(self) -> str:
        count = len(self.problems)
        return f"{self.subject}: {count} problem{'s' * (count != 1)}: " + "; ".join(self.problems)


class NotAnsweringError(FreshetError):
    """A server does not answer now, which may pass by itself; a refusal is something else."""


class StackError(FreshetError):
    """A server of the embedded stack did not start, stop or answer in time."""


class JobError(FreshetError):
    """Flink refused a job, or the job failed."""
