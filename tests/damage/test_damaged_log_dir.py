"""Damage to the files of the log directory itself: its checkpoints, and who it belongs to.

A checkpoint that does not parse sets all logs aside. One that does is believed, as by Kafka: what
is left is then what every reader saw from the log start on that it names.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from compactor.outcome.round_report import LogStatus
from storage.formats import checkpoint, clean_shutdown, meta_properties
from tests.compactor.plan_logs import plan_log_dirs
from tests.damage.damaged_logs import Case, Change, config_of, files_in, write_log_dir
from tests.damage.slow_reader import reader_view
from tests.damage.ways import cut, flipped
from tests.golden import corpora
from tests.support.local_round import LocalRound

SOURCE = "e23-first-dropped-none-0"
CONTENTS = {
    checkpoint.CLEANER_OFFSET: b"0\n1\ncase0 0 2\n",
    checkpoint.LOG_START: b"0\n1\ncase0 0 1\n",
    checkpoint.RECOVERY_POINT: b"0\n1\ncase0 0 5\n",
    checkpoint.REPLICATION: b"0\n1\ncase0 0 5\n",
    meta_properties.META_PROPERTIES: b"version=1\nnode.id=1\ncluster.id=abcdefghijklmnopqrstuv\n",
    clean_shutdown.CLEAN_SHUTDOWN: b'{"version":0,"brokerEpoch":7}',
}


def damages(data: bytes) -> Iterator[tuple[str, Change]]:
    for position in range(len(data)):
        for pattern in (0x01, 0x10, 0x80):
            yield f"byte {position} ^ {pattern:02x}", partial(flipped, position, pattern)
        yield f"cut to {position}", partial(cut, position)


@pytest.mark.parametrize("name", CONTENTS)
def test_a_damaged_file_is_reported_or_does_no_harm(
    local: LocalRound, tmp_path: Path, name: str
) -> None:
    endings: dict[str, int] = {}
    wrong = []
    for number, (what, change) in enumerate(damages(CONTENTS[name])):
        root = tmp_path / f"logs-{number}"
        ending = ended(local, root, name, change(CONTENTS[name]))
        endings[ending] = endings.get(ending, 0) + 1
        if ending not in ("set aside", "left", "view kept"):
            wrong.append(f"{what}: {ending}")
    assert wrong == []
    is_checkpoint = name in checkpoint_names()
    assert ("set aside" in endings) == (is_checkpoint and name != checkpoint.RECOVERY_POINT)


def checkpoint_names() -> set[str]:
    return {kind for kind in CONTENTS if kind.endswith("-checkpoint")}


def ended(local: LocalRound, root: Path, name: str, data: bytes) -> str:
    named = write_log_dir(root, [_sound()])
    (root / name).write_bytes(data)
    partition = root / "case0-0"
    before, whole = files_in(partition), files_in(root)
    config = config_of(named, root.parent / "topics.json")
    plan = plan_log_dirs([str(root)], config, corpora.now_ms())
    (log,) = local.run(plan).logs
    if log.status is LogStatus.CLEANED:
        start = log_start(root) if name == checkpoint.LOG_START else 0
        same = reader_view(before, start) == reader_view(files_in(partition), start)
        return "view kept" if same else f"another view after {data!r}"
    if files_in(partition) != before or files_in(root) != whole:
        return f"changed, and {log.status}"
    if log.status is LogStatus.PASSED_OVER:
        return "left"
    is_typed = (log.reason or "").startswith((f"{root}/{name}, byte ", f"{partition}/"))
    return "set aside" if is_typed and ", byte " in (log.reason or "") else f"untyped: {log.reason}"


def _sound() -> Case:
    return Case(SOURCE, "00000000000000000000.log", "nothing", lambda data: data)


def log_start(root: Path) -> int:
    """What the file says, which parses: Kafka takes the log to start there."""
    return checkpoint.read(str(root / checkpoint.LOG_START)).get(("case0", 0), 0)
