"""A snapshot on terminals of any size, and the keys that change what is seen of it."""

from __future__ import annotations

import io
import os
import pty
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.status.columns import REGIONS, TABLES
from freshet.status.keyboard import Keyboard
from freshet.status.screen import ORDERS, Screen, view
from freshet.status.snapshot import Snapshot, SourceStatus
from freshet.status.terminal import table_of
from tests.unit.status.snapshots import FAR, HOSTILE, NEAR, TABLE, snapshot

WIDTHS = (20, 60, 80, 100, 132, 200)


def printed(snap: Snapshot, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, height=40)
    console.print(view(snap, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed(snapshot(), width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_what_matters_most_is_shown_in_80_columns() -> None:
    shown = printed(snapshot(), 80)
    for text in ("regret", "3.250", "41.7", "dead letters", "delay p99", "2 s, missed"):
        assert text in shown
    assert "40,000, due" in shown
    assert "policy" not in shown
    assert "regret-proportional" in printed(snapshot(), 200)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_name_is_text_and_nothing_else(width: int) -> None:
    shown = printed(snapshot(tables=snapshot().tables), width)
    assert "\x1b" not in shown.replace("\n", "")
    if width == 200:
        assert HOSTILE.replace("\x1b", "�") in shown


def test_columns_are_left_out_by_their_rank_alone() -> None:
    ranks = {column.name: column.rank for column in REGIONS}
    rows = snapshot().regions[:2]
    before = [column.name for column in REGIONS]
    for width in range(200, 40, -1):
        now = [str(column.header) for column in table_of(rows, REGIONS, width).columns]
        gone = set(before) - set(now)
        assert set(now) <= set(before)
        assert all(ranks[name] >= max(ranks[kept] for kept in now) for name in gone)
        before = now
    assert {ranks[name] for name in before} == {0}


def test_long_names_are_whole_where_people_copy_them() -> None:
    console = Console(file=io.StringIO(), width=30)
    with console.capture() as capture:
        console.print(table_of(snapshot().tables, TABLES[:1], 30, whole=True))
    folded = "".join(capture.get().split())
    assert HOSTILE.replace("\x1b", "�").replace(" ", "") in folded


def test_what_is_wrong_is_told_before_all_else() -> None:
    away = SourceStatus("Flink", 41.2, "Flink does not answer at http://f:8081")
    shown = printed(snapshot(sources=(away,)), 200).splitlines()
    assert shown[1] == (
        "Flink: Flink does not answer at http://f:8081 (what it last told is 41 s old)"
    )


def test_rows_are_sorted() -> None:
    regions = snapshot().regions
    by_name = {order.name: sorted(regions, key=order.region) for order in ORDERS}
    assert by_name["worst first"][0].detached
    assert by_name["worst first"][1].meets_slo is False
    assert [each.region for each in by_name["name"]] == sorted(each.region for each in regions)
    assert by_name["backlog"][0].backlog_keys == max(each.backlog_keys for each in regions)
    tables = sorted(snapshot().tables, key=ORDERS[0].table)
    assert [table.table for table in tables] == [TABLE, HOSTILE]


def test_keys_scroll_and_sort_within_bounds() -> None:
    console = Console(file=io.StringIO(), width=100, height=10)
    screen, snap = Screen(), snapshot()

    def seen() -> list[str]:
        with console.capture() as capture:
            console.print(screen.draw(console, snap))
        return capture.get().splitlines()

    assert "freshet top" in seen()[0]
    assert len(seen()) == 10
    assert "worst first" in seen()[-1]
    assert "more lines" in seen()[-1]
    screen.press("up")
    assert "freshet top" in seen()[0]
    screen.press("down")
    assert "freshet top" not in seen()[0]
    for _ in range(50):
        screen.press("page down")
    assert "more lines" not in seen()[-1]
    last = seen()
    screen.press("up")
    assert seen()[1:9] == last[:8]
    screen.press("s")
    assert f"({ORDERS[1].name})" in seen()[-1]
    for _ in ORDERS[1:]:
        screen.press("s")
    assert screen.order == 0


def test_keys_come_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        with Keyboard() as keyboard:
            for pressed, name in ((b"q", "q"), (b"\x1b[A", "up"), (b"\x1b[B", "down"), (b"s", "s")):
                os.write(ours, pressed)
                assert keyboard.wait(10) == name
            assert keyboard.wait(0) is None
        os.close(ours)


def test_without_a_terminal_no_key_comes() -> None:
    with open(os.devnull) as nothing, pytest.MonkeyPatch.context() as patch:  # noqa: PTH123
        patch.setattr("sys.stdin", nothing)
        with Keyboard() as keyboard:
            assert keyboard.wait(0.01) is None


def test_top_without_a_stack_says_how_to_start_one(tmp_path: object) -> None:
    environment = {"FRESHET_HOME": str(tmp_path), "FRESHET_CONFIG": ""}
    result = CliRunner(env=environment).invoke(app, ["top", "--once"])
    assert result.exit_code == 1
    assert "freshet up" in result.output


def test_the_order_of_the_view_follows_the_parts(tmp_path: object) -> None:
    shown = printed(snapshot(), 132)
    places = [shown.index(text) for text in ("freshet top", "updates/s", "delay p99", "Plan 7")]
    assert places == sorted(places)
    assert re.search(rf"{re.escape(NEAR)}.*1950 ms", shown)
    assert re.search(rf"{re.escape(FAR)}.*away", shown)
