"""A script done by this project's engine, as lines of a transcript."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compactor.api.replays import cleaner_beside
from compactor.replay.replay import Replay
from storage.files.files import Files
from storage.log.engine.compiled import COMPILED


def replayed(files: Files, log_dir: str, script: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do a script in a directory. What it tells has been through JSON, as Kafka's has."""
    lines = replay_in(files, log_dir).lines(script)
    return [json.loads(json.dumps(line)) for line in lines]


def replay_in(files: Files, log_dir: str) -> Replay:
    """A replay in a directory of a local disk, as `compactor log replay` does it."""
    return Replay(files, log_dir, partial(cleaner_beside, log_dir))


@contextmanager
def kernels_used(wanted: bool) -> Iterator[None]:
    """Whether the engine uses its kernels from the first byte on, or never."""
    before = COMPILED.kernels, COMPILED.left_bytes
    COMPILED.kernels, COMPILED.left_bytes = None, 0 if wanted else 1 << 62
    try:
        assert (COMPILED.kernels_for(1) is not None) == wanted
        yield
    finally:
        COMPILED.kernels, COMPILED.left_bytes = before
