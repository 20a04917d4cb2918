"""`compactor` on a disk that has room for one log at a time: the smaller its logs, the more room.

python -m tests.end_to_end.turns_program LOG_DIR FREE_BYTES WORD...
"""

import sys
from pathlib import Path

from compactor.__main__ import main
from compactor.planning import layout, room
from compactor.planning.space import WORK_BYTES, Room


def set_room(log_dir: Path, free_bytes: int) -> None:
    """Beside the work directory's share. log_dir: of the run, or to be made by it."""
    before: list[int] = []

    def found(path: str, name: str) -> Room:  # noqa: ARG001  # as the one that it replaces
        size = sum(file.stat().st_size for file in log_dir.rglob("*.log"))
        before.append(size)
        return Room(name, WORK_BYTES + free_bytes + before[0] - size, None)

    room._room = found
    layout.SMALLEST_SHARE_BYTES = 1 << 20  # or each group is staged twice


if __name__ == "__main__":
    set_room(Path(sys.argv.pop(1)), int(sys.argv.pop(1)))
    main()
