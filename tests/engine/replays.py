"""A script done by this project's engine, as lines of a transcript."""

import json
from collections.abc import Sequence
from typing import Any

from compactor.replay.replay import Replay
from storage.files.files import Files


def replayed(files: Files, log_dir: str, script: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Do a script in a directory. What it tells has been through JSON, as Kafka's has."""
    lines = Replay(files, log_dir).lines(script)
    return [json.loads(json.dumps(line)) for line in lines]
