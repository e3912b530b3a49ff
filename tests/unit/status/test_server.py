"""The server of the page: what it answers, to whom, and how much one viewer costs."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshet.cli.serving import address_of
from freshet.errors import FreshetError
from freshet.status.maps import PlanMaps
from freshet.status.newest import Newest
from freshet.status.page import POLICY
from freshet.status.server import StatusServer
from freshet.status.snapshot import Snapshot
from tests.browser import browser
from tests.unit.status.snapshots import HOSTILE, TABLE, snapshot

LOOPBACK = "127.0.0.1"
DEADLINE_S = 30.0
LONG_S = 3_600.0


class Taken:
    """Counts the snapshots that are taken, each a bit later than the one before."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Snapshot:
        self.count += 1
        return snapshot(taken_at_ms=1_795_000_000_000 + self.count)


class Serving:
    """A server that runs."""

    def __init__(self, server: StatusServer, taken: Taken) -> None:
        self.server = server
        self.taken = taken

    def ask(
        self, path: str = "/", method: str = "GET", host: str | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        port = int(self.server.server_address[1])
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=DEADLINE_S)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"localhost:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content


@pytest.fixture
def serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    """A server of fixed figures; its parameter is the interval of snapshots, seconds."""
    interval_s = getattr(request, "param", LONG_S)
    taken = Taken()
    with (
        Newest(taken, interval_s) as newest,
        StatusServer(LOOPBACK, 0, newest, PlanMaps("none"), interval_s) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Serving(server, taken)
        finally:
            server.shutdown()
            thread.join(DEADLINE_S)


def test_page_json_and_health_are_answered(serving: Serving) -> None:
    answer, page = serving.ask()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert TABLE.encode() in page
    answer, content = serving.ask("/status.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    values = json.loads(content)
    assert values.pop("age_s") >= 0
    expected = snapshot(taken_at_ms=values["taken_at_ms"]).to_dict()
    assert values == json.loads(json.dumps(expected))
    answer, content = serving.ask("/healthz")
    assert (answer.status, content) == (200, b"ok\n")


@pytest.mark.parametrize("path", ["/", "/status.json", "/healthz", "/nothing"])
def test_every_answer_has_the_policy_and_head_is_get_without_a_body(
    serving: Serving, path: str
) -> None:
    got, content = serving.ask(path)
    head, nothing = serving.ask(path, "HEAD")
    assert (got.status, bool(content), nothing) == (head.status, True, b"")
    for answer in (got, head):
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Server"].strip() == "freshet"
        assert "Python" not in str(answer.headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "<b>"])
def test_nothing_but_reading_is_answered(serving: Serving, method: str) -> None:
    answer, content = serving.ask("/", method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert b"<b>" not in content


def test_other_paths_are_not_there(serving: Serving) -> None:
    for path in ("/status", "/../etc/passwd", "/status.json/"):
        assert serving.ask(path)[0].status == 404


def test_a_page_of_somebody_else_that_leads_here_is_refused(serving: Serving) -> None:
    for host in ("evil.example:80", "127.0.0.1.evil.example", ""):
        assert serving.ask("/status.json", host=host or " ")[0].status == 403
    for host in ("127.0.0.1", "localhost", "[::1]:80"):
        assert serving.ask("/status.json", host=host)[0].status == 200


def test_what_is_no_request_ends_the_connection_alone(serving: Serving) -> None:
    for sent in (b"<script>\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n"):
        with socket.create_connection((LOOPBACK, serving.server.server_address[1])) as connection:
            connection.settimeout(DEADLINE_S)
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            heard = b""
            while more := connection.recv(4_096):
                heard += more
            assert b"<script>" not in heard
    assert serving.ask()[0].status == 200


def test_many_viewers_take_no_more_snapshots_than_one(serving: Serving) -> None:
    for _ in range(20):
        serving.ask("/status.json")
    assert serving.taken.count == 1


@pytest.mark.parametrize("serving", [0.05], indirect=True)
def test_what_is_shown_is_renewed_with_nobody_asking(serving: Serving) -> None:
    before = serving.taken.count
    first = json.loads(serving.ask("/status.json")[1])["taken_at_ms"]
    done = threading.Event()
    for _ in range(1_000):
        if serving.taken.count > before + 1 or done.wait(0.05):
            break
    assert json.loads(serving.ask("/status.json")[1])["taken_at_ms"] > first


def test_a_server_that_takes_no_snapshots_is_not_healthy(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving.server.newest, "_newest", (-1e9, snapshot()))
    answer, content = serving.ask("/healthz")
    assert answer.status == 503
    assert b"no snapshot for" in content
    assert b"no newer ones come" in serving.ask()[1]


def test_a_port_that_is_taken_is_told(serving: Serving) -> None:
    port = int(serving.server.server_address[1])
    with pytest.raises(FreshetError, match="choose another port"):
        StatusServer(LOOPBACK, port, serving.server.newest, PlanMaps("none"), LONG_S)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8090", (LOOPBACK, 8090)),
        ("0", (LOOPBACK, 0)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("status.example:8090", ("status.example", 8090)),
        ("[::1]:8090", ("::1", 8090)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", "http://a:1", "a:", "99999", "a:b:80", "me:pw@a:80"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(FreshetError, match=r"\[HOST:\]PORT"):
        address_of(text)


@pytest.mark.parametrize("serving", [0.2], indirect=True)
def test_a_browser_shows_a_hostile_name_as_text_and_goes_on_to_refresh(
    serving: Serving, tmp_path: Path
) -> None:
    with browser(tmp_path / "browser") as chromium:
        page = chromium.page()
        page.open(serving.server.url)
        taken = "Number(document.getElementById('view').dataset.takenAtMs)"
        first = page.evaluate(taken)
        page.evaluate("document.getElementById('wide-regions').focus()")
        page.wait_for(f"{taken} > {first + 1}")
        assert page.evaluate("document.activeElement.id") == "wide-regions"
        names = page.evaluate(
            "[...document.querySelectorAll('#tables tbody th')].map(e => e.textContent)"
        )
        assert HOSTILE.replace("\x1b", "�") in names
        assert page.evaluate("document.title").startswith("Freshet")
        assert page.evaluate("document.querySelectorAll('img').length") == 0
        # The style was not refused: its own colours are there, in the dark as well.
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        page.call("Emulation.setEmulatedMedia", features=dark)
        assert page.evaluate(ground) == "rgb(20, 24, 29)"
        assert page.evaluate("document.getElementById('connection').hidden")
        assert page.complaints == []

        lost = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.call("Network.emulateNetworkConditions", offline=True, **lost)
        page.wait_for("!document.getElementById('connection').hidden")
        shown = page.evaluate("document.getElementById('connection').textContent")
        assert "No answer from freshet status for" in shown
        page.call("Network.emulateNetworkConditions", offline=False, **lost)
        page.wait_for("document.getElementById('connection').hidden")
