"""Signals at the start of the local engine, and while its tasks work that never end.

As `test_bad_input_ends` has them on Spark: nothing is left, and no worker outlives its driver.
"""

import signal
from collections.abc import Iterator

import pytest

from tests.end_to_end.bad_input_logs import swapped_logs
from tests.end_to_end.test_bad_input_ends import AT_START, Ended, Running
from tests.support.command_process import hangups

ENGINE = ("--engine", "local")
ENDS = [
    (AT_START, signal.SIGINT, "once"),
    ("scan", signal.SIGINT, "all"),
    ("rewrite", signal.SIGINT, "twice"),
    ("scan", signal.SIGTERM, "once"),
    ("rewrite", signal.SIGTERM, "all"),
    ("scan", signal.SIGHUP, "all"),
    ("rewrite", signal.SIGHUP, "once"),
]
SAID = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
    signal.SIGHUP: (129, "hung up: the terminal or connection is gone"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[object, Ended]]:
    """All of them, which wait for their tasks most of the time."""
    with hangups():
        running = {end: Running(tmp_path_factory.mktemp("ends"), end[0], ENGINE) for end in ENDS}
    try:
        yield {end: run.end(*end[1:]) for end, run in running.items()}
    finally:
        for run in running.values():
            run.kill()


@pytest.mark.parametrize(("stage", "number", "how"), ENDS)
def test_a_run_that_is_ended_leaves_nothing_behind_and_says_so(
    ended: dict[object, Ended], stage: str, number: signal.Signals, how: str
) -> None:
    found = ended[stage, number, how]
    code, line = SAID[number]
    assert found.code == code, found
    assert swapped_logs(found.before, found.after) in ((0, 1, 2) if stage == "rewrite" else (0,))
    assert found.left == []
    assert found.alive == []
    last = found.error.splitlines()[-1]
    assert last.startswith(f"compactor: {line}. ")
    assert "Traceback" not in found.error + found.out
