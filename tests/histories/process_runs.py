"""A run of ours in processes of its own, on either engine, as operators start it."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.histories.our_commands import Ended
from tests.kill.moments import PHASE_NAMES, Moment, Place, run_until
from tests.kill.processes import Target

PLACES = {"local": Place.LOCAL, "spark": Place.SPARK}  # by the engine that a step names


class ProcessRun(NamedTuple):
    ended: Ended
    was_hit: bool  # by SIGKILL
    what: str  # for a tally
    is_gone: bool  # no process of it is left


def carry_out(
    words: Sequence[str], engine: str, moment: Sequence[str | float] | None, root: Path
) -> ProcessRun:
    """Run `compactor WORDS…`; moment: phase, seconds and target of a kill, as a script has them."""
    kill, place = None, PLACES[engine]
    if moment is not None:
        phase, delay_seconds, target = moment
        kill = Moment(str(phase), float(delay_seconds), Target(str(target)))
    with TemporaryDirectory(prefix="processes-", dir=root) as folder:
        status, out, said = (Path(folder) / name for name in ("status", "out", "said"))
        argv = [sys.executable, "-m", "tests.kill.victim", str(status), *words, *place.options]
        outcome = run_until(kill, [*argv, "--format", "json"], status, (out, said), place)
        lines = out.read_text().splitlines()
        document = json.loads(lines[-1]) if lines else {}
        ended = Ended(outcome.code, document, said.read_text())
    what = f"{engine}, not killed"
    if kill is not None and outcome.was_hit:
        what = f"{engine}, {kill.target} killed in {PHASE_NAMES[outcome.fell_in]}"
    return ProcessRun(ended, outcome.was_hit, what, outcome.ended)
