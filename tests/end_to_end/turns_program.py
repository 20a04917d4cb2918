"""`compactor` on a machine that cannot take all logs at once, for want of room or of time.

python -m tests.end_to_end.turns_program room LOG_DIR FREE_BYTES WORD...
python -m tests.end_to_end.turns_program pace BYTES_PER_SECOND WORD...
"""

import sys
from pathlib import Path

if not __package__:  # spark-submit runs it as a file
    sys.path[0] = str(Path(__file__).parents[2])

from compactor.__main__ import main
from compactor.api import budgeted_rounds
from compactor.host.run_history import Pace
from compactor.planning import layout, space
from compactor.planning.space import WORK_BYTES, Room
from storage.files.files import Disk


def set_room(log_dir: Path, free_bytes: int) -> None:
    """Beside the work directory's share: the smaller the logs, the more room there is.

    log_dir: of the run, or to be made by it.
    """
    before: list[int] = []

    def found(path: str, name: str, disk: Disk) -> Room:  # noqa: ARG001  # as the one it replaces
        size = sum(file.stat().st_size for file in log_dir.rglob("*.log"))
        before.append(size)
        return Room(name, WORK_BYTES + free_bytes + before[0] - size, None)

    space._room = found
    layout.SMALLEST_SHARE_BYTES = 1 << 20  # or each group is staged twice


def set_pace(bytes_per_second: float) -> None:
    """What is known of this machine's speed before the first turn."""
    assert "machine_pace" in vars(budgeted_rounds), "a run learns the pace elsewhere"
    vars(budgeted_rounds)["machine_pace"] = lambda *_: Pace(0.0, bytes_per_second, 1)


if __name__ == "__main__":
    if sys.argv.pop(1) == "room":
        set_room(Path(sys.argv.pop(1)), int(sys.argv.pop(1)))
    else:
        set_pace(float(sys.argv.pop(1)))
    sys.exit(main())
