"""How far a round has come: a bar for each stage on a terminal, plain lines elsewhere.

The engine reports to a ProgressSink; this module decides who listens. rich is imported for a
terminal alone.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from compactor.host import log_lines
from compactor.host.log_lines import PREFIXES, Level, log_line
from compactor.host.output import ForgivingStream
from compactor.host.printable import counted, duration_text, printable, size_text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SWAP_STAGE = "swap"  # of what is left when all is rewritten; its units are all groups
RETENTION_STAGE = "retention"  # the other one, which may delete segments; has no units
START_STAGE = "start engine"  # until its first stage; has no units
COPY_STAGE = "copy"  # of log directories, for run --output; as the next, in bytes of all files
MANIFEST_STAGE = "checksums"  # of the copies
VERIFY_STAGE = "verify"  # its units are segments; those of every other stage are bytes of .log
AGAINST_STAGE = "compare"  # units: partitions
SAMPLE_STAGE = "sample"  # of logs, for plan --sample
RECOVERY_STAGE = "recover"  # after an unclean shutdown; units: partitions
_COUNTED = {
    SWAP_STAGE: "groups",
    VERIFY_STAGE: "segments",
    AGAINST_STAGE: "partitions",
    RECOVERY_STAGE: "partitions",
}
LINE_INTERVAL_SECONDS = 10.0
_BAR_COLUMNS = 12  # so that a line with amount and pace fits 80
SURE_SECONDS = 2.0  # before that a pace says little


class ProgressSink(Protocol):
    def stage(self, name: str, total: int) -> None:
        """A stage of total units begins (0: not known), and with it the one before is over."""

    def advance(self, done: int) -> None:
        """Report how many units of the stage are done in all."""

    def swapped(self, groups: int) -> None:
        """Report how many segment groups are swapped in; 0: the first is about to be."""

    def message(self, text: str, log: str | None = None) -> None:
        """Report something that an operator wants to know now, in one line.

        log: TOPIC-PARTITION, if it is a warning about one.
        """


def running_total(advance: Callable[[int], object]) -> Callable[[int], None]:
    """Turn a function that takes the total done into one that takes what was added; one thread."""
    done = 0

    def more(units: int) -> None:
        nonlocal done
        done += units
        advance(done)

    return more


@contextmanager
def open_progress(stream: TextIO) -> Iterator[ProgressSink]:
    """A sink for stream, usually standard error; the last stage is closed on the way out."""
    if stream.isatty() and not log_lines.is_json_wanted():
        with _terminal_bars(stream) as bars:
            yield bars
        return
    lines = PlainProgress(stream, time.monotonic)
    try:
        yield lines
    except BaseException:
        lines.close(is_over=False)
        raise
    lines.close()


class PlainProgress:
    """A line when a stage is over, and one every ten seconds of a long one."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream, self._clock = stream, clock
        self._name: str | None = None
        self._total = self._done = 0
        self._began = self._last_line = 0.0

    def stage(self, name: str, total: int) -> None:
        self.close()
        self._name, self._total, self._done = name, total, 0
        self._began = self._last_line = self._clock()
        log_lines.enter_phase(name)

    def advance(self, done: int) -> None:
        self._done = done
        now = self._clock()
        if now - self._last_line >= LINE_INTERVAL_SECONDS:
            self._last_line = now
            amount = amount_text(self._name or "", done, self._total)
            seconds = now - self._began
            pace = pace_text(done, self._total, seconds, self._name not in _COUNTED)
            behind = f", {pace}" if pace else ""
            self._write(f"{self._name}: {amount} after {seconds:.0f} s{behind}", seconds)

    def swapped(self, groups: int) -> None:
        if self._name == SWAP_STAGE:
            self.advance(groups)

    def message(self, text: str, log: str | None = None) -> None:
        level = Level.INFO if log is None else Level.WARNING
        log_line(printable(text), level, log=log, stream=self._stream)

    def close(self, is_over: bool = True) -> None:
        """End the stage that is open, if one is."""
        if self._name is not None:
            seconds = self._clock() - self._began
            amount = amount_text(self._name, self._done, self._total)
            words = ["done" if is_over else "stopped at" if amount else "stopped", amount]
            line = f"{self._name}: {' '.join(filter(None, words))} in {seconds:.1f} s"
            self._write(line, seconds)
            if is_over:
                log_lines.enter_phase(None)
        self._name = None

    def _write(self, text: str, seconds: float) -> None:
        """What is known of the stage that is open."""
        numbers = {"done": self._done, "total": self._total or None, "seconds": round(seconds, 3)}
        log_line(printable(text), stream=self._stream, numbers=numbers)


class TerminalProgress:
    """One bar a stage; those that are over stay above."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._task: TaskID | None = None
        self._name, self._total, self._began = "", 0, 0.0

    def stage(self, name: str, total: int) -> None:
        self.close()
        self._name, self._total = name, total
        amount = amount_text(name, 0, total)
        self._began = time.monotonic()
        self._task = self._bars.add_task(
            printable(name), total=total or None, amount=amount, pace=""
        )

    def advance(self, done: int) -> None:
        if self._task is not None:
            amount = amount_text(self._name, done, self._total)
            seconds = time.monotonic() - self._began
            pace = pace_text(done, self._total, seconds, self._name not in _COUNTED)
            self._bars.update(self._task, completed=done, amount=amount, pace=pace)

    def swapped(self, groups: int) -> None:
        if self._name == SWAP_STAGE:
            self.advance(groups)

    def message(self, text: str, log: str | None = None) -> None:
        line = printable(text) if log is None else f"{PREFIXES[Level.WARNING]}{printable(text)}"
        self._bars.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        """End the stage that is open: a bar without a total would go on pulsing."""
        if self._task is not None:
            if not self._total:
                self._bars.update(self._task, total=1, completed=1)
            self._bars.stop_task(self._task)
        self._task = None


def amount_text(stage: str, done: int, total: int) -> str:
    """How much is done, in the units of the stage."""
    if stage in (START_STAGE, RETENTION_STAGE):
        return ""
    unit = _COUNTED.get(stage)
    if unit is None:
        return f"{size_text(done)} of {size_text(total)}" if total else size_text(done)
    return f"{done:,} of {total:,} {unit}" if total else f"{done:,} {unit}"


class ChangeWatch:
    """Passes everything on, and remembers what the log directories have gone through."""

    def __init__(self, sink: ProgressSink) -> None:
        self._sink = sink
        self.swap_began = False
        self.swapped_groups = 0  # in all turns
        self._earlier_groups = 0  # in the turns before this one
        self.leaves_out = False  # this turn: logs that a later turn or run may clean
        self.retention_began = False  # in any turn
        self._is_all_cleaned = False
        self.recovered = False  # what was cut short before was settled, before anything else
        self.recovery_broke_off = False  # it was being settled
        self.discarded_runs = 0  # whose kept originals had expired
        self.kept_in: str | None = None  # what is replaced or deleted, if it is
        self.copies: tuple[str, ...] = ()  # that are being made, and alone are changed
        self.are_copies_whole = False
        self.split_began = False  # of segments whose offsets lie too far apart, before the engine
        self.staged_is_left = False  # or may be: a file that the round could not remove again

    def stage(self, name: str, total: int) -> None:
        if name == RETENTION_STAGE:
            self.retention_began, self._is_all_cleaned = True, not self.leaves_out
        self._sink.stage(name, total)

    def turn(self) -> None:
        """A turn of a run begins."""
        self._earlier_groups, self._is_all_cleaned = self.swapped_groups, False

    def advance(self, done: int) -> None:
        self._sink.advance(done)

    def swapped(self, groups: int) -> None:
        self.swap_began, self.swapped_groups = True, self._earlier_groups + groups
        self._sink.swapped(groups)

    def message(self, text: str, log: str | None = None) -> None:
        self._sink.message(text, log)

    def discard(self) -> None:
        """What one more run has kept is about to be discarded."""
        self.discarded_runs += 1

    def split(self) -> None:
        """A segment is about to be."""
        self.split_began = True

    @property
    def has_changed(self) -> bool:
        """Whether anything was changed, or may have been, before retention."""
        return not self.copies and (
            self.swap_began
            or self.recovered
            or self.recovery_broke_off
            or self.split_began
            or self.staged_is_left
            or self.discarded_runs > 0
        )

    def what_was_changed(self) -> str:
        """The sentences that end an error message."""
        if self.copies:
            which = " and ".join(map(printable, self.copies))
            if self.are_copies_whole:
                return f"The original is as it was, and the copy is finished: {which}."
            return (
                "The original is as it was. What there is of the copy has no manifest and is of "
                f"no use: remove {which} before you run again."
            )
        kept = f" What was replaced is kept in {printable(self.kept_in)}." if self.kept_in else ""
        groups = counted(self.swapped_groups, "group")
        if self.retention_began:
            cleaned = (
                "Every log that could be cleaned is cleaned"
                if self._is_all_cleaned
                else f"{groups} of segments had been swapped in and stay; other logs wait to be "
                "cleaned"
            )
            return (
                f"{cleaned}. Retention had begun: logs that it reached start after the segments "
                f"that it deleted. Run it again.{kept}"
            )
        if not self.swap_began:
            but = []
            if self.discarded_runs:
                runs = counted(self.discarded_runs, "run")
                but.append(f"for originals of {runs}, kept until now, that had expired")
            if self.recovery_broke_off:
                but.append(
                    "perhaps for what was just being settled of a cleaning that had been cut "
                    "short; recover or the next run finishes it"
                )
            elif self.recovered:
                but.append("for what was settled of a cleaning that had been cut short")
            if self.split_began:
                but.append("for segments that were split first, batch by batch")
            if self.staged_is_left:
                but.append(
                    "perhaps for files staged beside the segments, which the next run removes"
                )
            changed = f"Nothing was changed{', except ' if but else ''}{' and '.join(but)}."
            return changed + (kept if self.split_began else "")
        if self.staged_is_left:
            kept = (
                f" Staged files may be left beside the segments; the next run removes them.{kept}"
            )
        return (
            f"{groups} of segments had been swapped in and stay; everything else is as it was, "
            f"and a log's checkpoint moves only when all of its groups are in.{kept}"
        )


@contextmanager
def _terminal_bars(stream: TextIO) -> Iterator[TerminalProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(_BAR_COLUMNS),
        TextColumn("{task.fields[amount]}", markup=False),
        TextColumn("{task.fields[pace]}", markup=False),
        TimeElapsedColumn(),
        console=Console(file=cast(TextIO, ForgivingStream(stream))),  # as PlainProgress
        redirect_stdout=False,  # stdout is the report's, perhaps a pipe's
        redirect_stderr=False,
    )
    with bars:
        terminal = TerminalProgress(bars)
        try:
            yield terminal
        finally:
            terminal.close()


def pace_text(done: int, total: int, seconds: float, is_in_bytes: bool) -> str:
    """Return text like `120.0 MB/s, 1 min 5 s left`; nothing where that is not known yet.

    total: 0 where it is not known. seconds: since the stage began.
    """
    if seconds < SURE_SECONDS or not done > 0:
        return ""
    parts = [f"{size_text(round(done / seconds))}/s"] if is_in_bytes else []
    if done < total:
        left_ms = (total - done) * seconds / done * 1000
        parts.append(f"{duration_text(max(round(left_ms / 1000), 1) * 1000)} left")
    return ", ".join(parts)
