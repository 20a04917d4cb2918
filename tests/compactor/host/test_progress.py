"""Lines for a log file, bars for a terminal, and what an error may say was changed."""

import contextlib
import os
import pty
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from compactor.host.progress import (
    START_STAGE,
    SWAP_STAGE,
    ChangeWatch,
    PlainProgress,
    amount_text,
    open_progress,
)

MB = 1_000_000


def told(times: Iterator[float], stream: StringIO) -> PlainProgress:
    return PlainProgress(stream, lambda: next(times))


def test_a_short_stage_is_one_line() -> None:
    stream = StringIO()
    lines = told(iter([0, 1, 2.5, 2.5, 3]), stream)
    lines.stage("scan", 10 * MB)
    lines.advance(10 * MB)
    lines.stage(SWAP_STAGE, 2)
    lines.close()
    assert stream.getvalue() == (
        "scan: done 10.0 MB of 10.0 MB in 2.5 s\nswap: done 0 of 2 groups in 0.5 s\n"
    )


def test_a_long_stage_tells_every_ten_seconds() -> None:
    stream = StringIO()
    lines = told(iter([0, 9.9, 10.1, 11, 20.2]), stream)
    lines.stage("scan", 0)
    for done in (1, 2, 3, 4):
        lines.advance(done * MB)
    assert stream.getvalue() == (
        "scan: 2.0 MB after 10 s, 198.0 kB/s\nscan: 4.0 MB after 20 s, 198.0 kB/s\n"
    )


def test_a_stage_without_units_tells_its_time() -> None:
    stream = StringIO()
    lines = told(iter([0, 3.5]), stream)
    lines.stage(START_STAGE, 0)
    lines.close()
    assert stream.getvalue() == "start engine: done in 3.5 s\n"


def test_a_message_cannot_bring_control_characters() -> None:
    stream = StringIO()
    told(iter([]), stream).message("a\x1b[2Jb")
    assert stream.getvalue() == "a\\x1b[2Jb\n"


def test_a_stage_that_an_error_ends_is_not_done() -> None:
    stream = StringIO()
    with pytest.raises(ValueError, match="boom"), open_progress(stream) as progress:
        progress.stage("scan", 5 * MB)
        progress.advance(2 * MB)
        raise ValueError("boom")
    assert stream.getvalue().startswith("scan: stopped at 2.0 MB of 5.0 MB in ")


def test_a_stream_that_takes_nothing_is_no_reason_to_stop() -> None:
    """Nor is anything left over, at which its end would fail: Python's exit code were another."""
    with open("/dev/full", "w") as stream, open_progress(stream) as progress:
        progress.stage("scan", 0)
        progress.message("careful")
        progress.stage(SWAP_STAGE, 0)


def test_what_comes_when_there_is_room_again_is_written(tmp_path: Path) -> None:
    path = tmp_path / "errors"
    with open(path, "w") as stream, open("/dev/full", "w") as full:
        lines = PlainProgress(stream, lambda: 0.0)
        there = os.dup(stream.fileno())
        os.dup2(full.fileno(), stream.fileno())
        lines.message("lost")
        os.dup2(there, stream.fileno())
        os.close(there)
        lines.message("told")
    assert path.read_text() == "told\n"


def everything_from(controller: int) -> str:
    """What a terminal was sent until its other end was closed; closes this end.

    One read gives at most 4 KiB of it, and a loaded machine redraws the bars more often.
    """
    shown = bytearray()
    with contextlib.suppress(OSError), os.fdopen(controller, "rb", buffering=0) as sent:
        while piece := sent.read(1 << 16):  # Linux says EIO once the other end is closed
            shown += piece
    return shown.decode()


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, open_progress(stream) as progress:
        progress.stage("scan", 5 * MB)
        progress.advance(5 * MB)
        progress.message("[red]careful\x1b[2J")
        progress.stage("verify", 0)
    shown = everything_from(controller)
    assert "5.0 MB of 5.0 MB" in shown
    assert "[red]careful\\x1b[2J" in shown
    assert "━" in shown
    assert "\x1b[?25h" in shown.rpartition("\x1b[?25l")[2]  # the cursor is back


def test_a_terminal_that_was_hung_up_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream, open_progress(stream) as progress:
        progress.stage("scan", 5 * MB)
        os.close(controller)
        with pytest.raises(OSError, match="Input/output error"):
            os.write(terminal, b"x")
        progress.advance(5 * MB)
        progress.message("careful")
        progress.stage("verify", 0)


@pytest.mark.parametrize(
    ("stage", "done", "total", "text"),
    [
        ("scan", 1_500_000, 3_000_000, "1.5 MB of 3.0 MB"),
        ("swap", 1_234, 5_678, "1,234 of 5,678 groups"),
        ("verify", 3, 0, "3 segments"),
        ("scan", 0, 0, "0 B"),
        ("start engine", 0, 0, ""),
    ],
)
def test_amounts_are_in_the_units_of_their_stage(
    stage: str, done: int, total: int, text: str
) -> None:
    assert amount_text(stage, done, total) == text


class TestChangeWatch:
    def watch(self, *stages: str, swapped: int | None = None) -> str:
        stream = StringIO()
        watch = ChangeWatch(PlainProgress(stream, lambda: 0.0))
        for name in stages:
            watch.stage(name, 9)
            watch.advance(5)
        if swapped is not None:
            watch.swapped(swapped)
        watch.message("passed on")
        assert "passed on" in stream.getvalue()
        return watch.what_was_changed()

    def test_before_the_swap_nothing_was_changed(self) -> None:
        assert self.watch() == "Nothing was changed."
        assert self.watch("scan", "resolve", "rewrite") == "Nothing was changed."

    def test_but_for_what_came_before_the_engine(self) -> None:
        watch = ChangeWatch(PlainProgress(StringIO(), lambda: 0.0))
        watch.split()
        split = "for segments that were split first, batch by batch."
        assert watch.what_was_changed() == f"Nothing was changed, except {split}"
        watch.recovered = True
        settled = "for what was settled of a cleaning that had been cut short"
        assert watch.what_was_changed() == f"Nothing was changed, except {settled} and {split}"
        watch.discard()
        watch.discard()
        gone = "for originals of 2 runs, kept until now, that had expired"
        assert (
            watch.what_was_changed()
            == f"Nothing was changed, except {gone} and {settled} and {split}"
        )

    def test_where_originals_are_kept_is_said_once_something_was_replaced(self) -> None:
        watch = ChangeWatch(PlainProgress(StringIO(), lambda: 0.0))
        watch.kept_in = "/originals/cafe"
        told = " What was replaced is kept in /originals/cafe."
        assert watch.what_was_changed() == "Nothing was changed."
        watch.split()
        assert watch.what_was_changed().endswith(f"batch by batch.{told}")
        watch.swapped(1)
        assert watch.what_was_changed().endswith(f"all of its groups are in.{told}")
        watch.stage("retention", 0)
        assert watch.what_was_changed().endswith(f"Run it again.{told}")

    def test_with_logs_left_for_a_later_turn_it_is_not_said_that_all_are_cleaned(self) -> None:
        all_cleaned = "Every log that could be cleaned is cleaned. Retention had begun"
        assert self.watch("swap", "retention", swapped=3).startswith(all_cleaned)
        watch = ChangeWatch(PlainProgress(StringIO(), lambda: 0.0))
        watch.turn()
        watch.leaves_out = True
        watch.swapped(3)
        watch.stage("retention", 0)
        told = "3 groups of segments had been swapped in and stay; other logs wait to be cleaned. "
        assert watch.what_was_changed().startswith(f"{told}Retention had begun: ")
        watch.turn()
        watch.leaves_out = False
        assert watch.what_was_changed().startswith(f"{told}Retention had begun: ")
        watch.swapped(2)
        assert watch.what_was_changed().startswith("5 groups of segments")
        watch.stage("retention", 0)
        assert watch.what_was_changed().startswith(all_cleaned)

    def test_in_the_swap_finished_groups_were(self) -> None:
        assert self.watch("rewrite", swapped=0).startswith("0 groups of segments had been")
        assert self.watch("rewrite", swapped=1).startswith("1 group of segments had been")
        assert self.watch("rewrite", "swap", swapped=3).startswith("3 groups of segments had")
