"""Serves the page: read-only, from one snapshot at a time, however many look at it."""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from freshet.errors import FreshetError
from freshet.status.maps import PlanMaps
from freshet.status.newest import Newest
from freshet.status.page import POLICY, render_page

CONNECTIONS_MAX = 64
"""At the same time; more are closed at once."""

IDLE_S = 15.0
"""A connection without a request is closed after this."""

UNHEALTHY_S = 30.0
"""Without a new snapshot for so long, the server says that it is not well."""

_HTML = "text/html; charset=utf-8"
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class StatusServer(ThreadingHTTPServer):
    """Answers ``/``, ``/status.json`` and ``/healthz``; GET and HEAD alone."""

    daemon_threads = True
    request_queue_size = CONNECTIONS_MAX

    def __init__(
        self, host: str, port: int, newest: Newest, maps: PlanMaps, interval_s: float
    ) -> None:
        """Listens; ``serve_forever`` answers.

        Args:
            host: address to listen on.
            port: 0 for any that is free.
            newest: what is shown.
            maps: draws the plans.
            interval_s: between two snapshots, seconds.

        Raises:
            FreshetError: it cannot listen there.
        """
        self.newest = newest
        self.maps = maps
        self.interval_s = interval_s
        self._room = threading.BoundedSemaphore(CONNECTIONS_MAX)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = found[0]
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise FreshetError(
                f"the page cannot be served at {host}, port {port} ({error}); choose another port"
                " with --serve [HOST:]PORT"
            ) from error
        address = ipaddress.ip_address(str(self.server_address[0]).partition("%")[0])
        self.is_local = address.is_loopback
        """Whether only this machine reaches it."""

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = str(self.server_address[0]), self.server_address[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread, unless there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers, and makes room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A viewer that goes away in the middle of an answer is nobody's error."""

    def page(self) -> str:
        """The page as it is now."""
        snapshot, age_s = self.newest.get()
        maps = self.maps.maps(snapshot.plans)
        return render_page(snapshot, maps, age_s=age_s, interval_s=self.interval_s)

    def json(self) -> str:
        """The same as JSON."""
        snapshot, age_s = self.newest.get()
        values = {"age_s": round(age_s, 3), **snapshot.to_dict()}
        return json.dumps(values, ensure_ascii=False) + "\n"

    def health(self) -> tuple[HTTPStatus, str]:
        """Whether snapshots are taken; what they say is no matter of this server's health."""
        _, age_s = self.newest.get()
        if age_s > max(UNHEALTHY_S, 2 * self.interval_s):
            return HTTPStatus.SERVICE_UNAVAILABLE, f"no snapshot for {age_s:.0f} s\n"
        return HTTPStatus.OK, "ok\n"


class _Handler(BaseHTTPRequestHandler):
    server: StatusServer
    protocol_version = "HTTP/1.1"
    server_version = "freshet"
    sys_version = ""
    timeout = IDLE_S

    def do_GET(self) -> None:
        status, kind, content = self._answer()
        self._send(status, kind, content)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self) -> tuple[HTTPStatus, str, str]:
        if not self._is_asked_for():
            return HTTPStatus.FORBIDDEN, _TEXT, "this page is served to this machine alone\n"
        path = urlsplit(self.path).path
        if path == "/":
            return HTTPStatus.OK, _HTML, self.server.page()
        if path == "/status.json":
            return HTTPStatus.OK, _JSON, self.server.json()
        if path == "/healthz":
            status, content = self.server.health()
            return status, _TEXT, content
        return HTTPStatus.NOT_FOUND, _TEXT, "there are /, /status.json and /healthz\n"

    def _is_asked_for(self) -> bool:
        """Whether the request names this machine: a page of somebody else's whose name was made to
        lead here (DNS rebinding) names its own."""
        if not self.server.is_local:
            return True
        named = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        return named in _LOOPBACK_NAMES

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Says what is wrong with a request, without repeating any of it."""
        self.close_connection = True
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self._send(status, _TEXT, f"{status.phrase.lower()}; only GET and HEAD are answered\n")

    def _send(self, status: HTTPStatus, kind: str, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Keeps no log: there is nothing to do but to look."""
