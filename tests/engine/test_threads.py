"""Some seconds of one writer and four readers of a log, in threads, against a model. An hour:
`python -m tests.engine.threads --minutes 60`."""

import time
from pathlib import Path

from tests.engine.threads.model import Model, run
from tests.storage.log.batches_for_tests import batch


def test_readers_see_what_the_writer_wrote(tmp_path: Path) -> None:
    """L-1.4: readers take no lock, and are given whole appends in order."""
    seed = time.time_ns() % 1_000_000
    model = run(str(tmp_path / "t-0"), seed, seconds=1.5)
    assert model.problems == [], f"seed {seed}"
    assert model.serial > 20
    assert model.batches_read > 20


def test_a_batch_that_the_model_does_not_have_is_noticed(tmp_path: Path) -> None:
    model = Model(str(tmp_path / "t-0"), 0)
    model.write(0.05)
    with model.log as log:
        log.append_as_leader(batch(0, 1))
        model.done.clear()
        model.read(0)  # which ends with the first problem
        assert len(model.problems) == 1
        model.hold_all(log)
    assert len(model.problems) == 2
