"""A real browser without a window, driven by Chromium's DevTools protocol through two pipes.

Needs no driver and no library: messages are JSON, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 90.0
"""Of one answer; a busy machine takes long to start a browser."""

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--remote-debugging-pipe",
    "--window-size=1280,900",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_LOWEST_DESCRIPTOR = 10  # those below are what the browser's end is moved to


def chromium() -> str:
    """The browser's program; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is on the PATH (on Debian and Ubuntu: apt-get install chromium)")
    return found


class Page:
    """One page that is open."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []
        """Errors and warnings that were told on the console, by the page or about it."""

        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol for this page."""
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """Value of an expression in the page; a promise's when it is kept."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url: str) -> None:
        """Goes to an address, and waits until all of it is there."""
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def wait_for(self, expression: str, deadline_s: float = DEADLINE_S) -> Any:
        """Value of an expression once it is something; asked again and again."""
        deadline = time.monotonic() + deadline_s
        value = None
        while not value:
            value = self.evaluate(expression)
            assert value or time.monotonic() < deadline, f"never came true: {expression}"
            if not value:
                select.select([], [], [], 0.05)
        return value

    def screenshot(self) -> bytes:
        """All of the page as a PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def take(self, event: dict[str, Any]) -> None:
        """Takes an event of this page in."""
        told = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(told["args"]))
        elif event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])


class Browser:
    """The running browser."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, from_: int) -> None:
        self._process = process
        self._to = to
        self._from = from_
        self._heard = b""
        self._calls = 0
        self._pages: dict[str, Page] = {}

    def page(self) -> Page:
        """A new empty page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        self._pages[attached["sessionId"]] = page
        return page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Calls a method, and takes in the events that come before its answer."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            heard = self._next(deadline, method)
            if heard.get("id") == self._calls:
                assert "error" not in heard, (method, heard["error"])
                return dict(heard["result"])
            page = self._pages.get(heard.get("sessionId", ""))
            if page is not None and "method" in heard:
                page.take(heard)

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._heard:
            left = max(0.0, deadline - time.monotonic())
            ready = select.select([self._from], [], [], left)[0]
            assert ready, f"the browser did not answer {what} within {DEADLINE_S:.0f} s"
            heard = os.read(self._from, 1 << 16)
            assert heard, f"the browser has ended: {self._process.poll()}"
            self._heard += heard
        message, self._heard = self._heard.split(b"\0", 1)
        return dict(json.loads(message))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with an empty profile, which ends with the block.

    Args:
        folder: for its profile; made new.
    """
    program = chromium()
    folder.mkdir(parents=True)
    theirs_in, to = os.pipe()
    from_, theirs_out = os.pipe()
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, _LOWEST_DESCRIPTOR) for fd in (theirs_in, theirs_out)]
    redirected = f'exec "$0" "$@" 3<&{moved[0]} 4>&{moved[1]} 2>/dev/null'
    process = subprocess.Popen(
        ["bash", "-c", redirected, program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"],
        pass_fds=moved,
        stdout=subprocess.DEVNULL,
        # Its processes are a group, which is ended as a whole if it does not end by itself.
        start_new_session=True,
    )
    for descriptor in (theirs_in, theirs_out, *moved):
        os.close(descriptor)
    try:
        running = Browser(process, to, from_)
        yield running
        with contextlib.suppress(AssertionError, OSError):
            running.call("Browser.close")
    finally:
        os.close(to)
        os.close(from_)
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait(30)
