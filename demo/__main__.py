"""`python -m demo`: write a log directory; plan, dry-run, run and verify a compaction; prove it.

The run is on Spark. The local engine then cleans a copy that was made before, to the same bytes.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group

from compactor.host.printable import size_text
from compactor.views.fitting_table import Column, table_lines
from demo.proof import LogContents, differences, files_in, read_log_dir
from demo.workload import topic_configs, write_log_dir

RECORDS = 400_000
MASTER = "local[2]"

_COLUMNS = (
    Column("segments", 3),
    Column("size", 1),
    Column("records", 2),
    Column("keys", 4),
    Column("changed keys", 0),
)


def main() -> int:
    """Run every step; 0 if nothing was lost and the dry run had told the truth."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="about so many (%(default)s)")
    parser.add_argument("--keep", metavar="DIR", help="work in this new directory and leave it")
    wanted = parser.parse_args()
    if wanted.keep:
        os.mkdir(wanted.keep)
        return _show(Steps(os.path.abspath(wanted.keep)), wanted.records)
    with tempfile.TemporaryDirectory(prefix="compactor-demo-") as folder:
        return _show(Steps(folder), wanted.records)


class Steps:
    """The commands of the demonstration, in one folder."""

    def __init__(self, folder: str) -> None:
        self._now_ms = time.time_ns() // 1_000_000  # one clock for all steps: horizons depend on it
        self.log_dir = os.path.join(folder, "kafka-logs")
        self._folder = folder
        self._configs = os.path.join(folder, "topics.json")
        self._copy = os.path.join(folder, "kafka-logs-before")
        self._local = os.path.join(folder, "kafka-logs-local")
        self.console = Console(highlight=False, markup=False)

    def write(self, records: int) -> None:
        self.heading(f"A log directory as a broker leaves it, with {records:,} records")
        began = time.monotonic()
        write_log_dir(self.log_dir, records, end_ms=self._now_ms)
        with open(self._configs, "w", encoding="utf-8") as out:
            json.dump(topic_configs(), out, indent=2)
        seconds = time.monotonic() - began
        self.console.print(f"written to {self.log_dir} in {seconds:.1f} s")

    def plan(self) -> None:
        self.heading("Which logs would be cleaned, and why not the others?")
        self._compactor("plan", self.log_dir, "--topic-configs", self._configs)

    def dry_run(self) -> dict[str, Any]:
        self.heading("What exactly would go? A dry run reads everything and writes nothing")
        return self._round("dry-run.json", "--dry-run")

    def run(self) -> dict[str, Any]:
        self.heading("The real run, behind a copy of hard links")
        shutil.copytree(self.log_dir, self._copy, copy_function=os.link)
        shutil.copytree(self.log_dir, self._local)
        return self._round("run.json")

    def run_locally(self) -> bool:
        """Clean the other copy without Spark, and return whether it leaves the same bytes."""
        words = ["run", self._local, "--engine", "local", *self._rules()]
        done = subprocess.run(
            [sys.executable, "-m", "compactor", *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"demo: compactor run --engine local: {done.stderr}")
        return files_in(self._local) == files_in(self.log_dir)

    def verify(self) -> None:
        self.heading("Is everything in order, and does a reader miss anything?")
        self._compactor("verify", self.log_dir, "--against", self._copy)

    def heading(self, text: str) -> None:
        self.console.print(f"\n▌ {text}", style="bold")

    def _round(self, report: str, *options: str) -> dict[str, Any]:
        path = os.path.join(self._folder, report)
        words = [*options, *self._rules(), "--master", MASTER, "--report", path]
        self._compactor("run", self.log_dir, *words)
        with open(path, encoding="utf-8") as source:
            document: dict[str, Any] = json.load(source)
        return document

    def _rules(self) -> list[str]:
        return ["--topic-configs", self._configs, "--as-of", str(self._now_ms)]

    def _compactor(self, *words: str) -> None:
        self.console.print(f"$ {shlex.join(['compactor', *words])}\n", style="cyan", soft_wrap=True)
        sys.stdout.flush()
        done = subprocess.run([sys.executable, "-m", "compactor", *words], check=False)
        if done.returncode:
            sys.exit(f"demo: compactor {words[0]} ended with exit code {done.returncode}")


def _show(steps: Steps, records: int) -> int:
    steps.write(records)
    before = read_log_dir(steps.log_dir)
    steps.plan()
    foretold = steps.dry_run()
    untouched = read_log_dir(steps.log_dir) == before
    done = steps.run()
    steps.verify()
    steps.heading("Proof, by reading every record before and after")
    after = read_log_dir(steps.log_dir)
    lost = differences(before, after)
    steps.console.print(_table(before, after, lost, steps.console.width))
    is_same_locally = steps.run_locally()
    dry_run_was_right = foretold["totals"] == _as_dry_run(done["totals"])
    answers = (
        ("Did the dry run leave every record as it was?", untouched),
        ("Did the real run do what the dry run had said, record for record?", dry_run_was_right),
        ("Has every key the last value that it had before?", not any(lost.values())),
        ("Does the local engine, without Java, leave the same bytes of a copy?", is_same_locally),
    )
    for question, answer in answers:
        steps.console.print(f"{question} {'Yes.' if answer else 'NO!'}")
    return 0 if all(answer for _, answer in answers) else 1


def _as_dry_run(totals: dict[str, Any]) -> dict[str, Any]:
    """Totals of a real run, its cleaned logs counted as those that a dry run would clean."""
    logs = totals["logs"]
    return {**totals, "logs": {**logs, "cleaned": 0, "would-clean": logs["cleaned"]}}


def _table(
    before: Mapping[str, LogContents],
    after: Mapping[str, LogContents],
    lost: Mapping[str, int],
    width: int,
) -> Group:
    rows = []
    for name in sorted(before):
        was, now = before[name], after[name]
        row = [name, f"{was.segments} → {now.segments}"]
        row.append(f"{size_text(was.log_bytes)} → {size_text(now.log_bytes)}")
        row.append(f"{was.records:,} → {now.records:,}")
        rows.append([*row, f"{len(was.latest):,}", f"{lost[name]:,}"])
    return Group(*table_lines("log", _COLUMNS, rows, width))


if __name__ == "__main__":
    sys.exit(main())
