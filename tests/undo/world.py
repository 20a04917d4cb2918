"""One log in a directory of its own: what we do to it, in this process, and what a broker does."""

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from compactor.originals import kept_run
from compactor.originals.kept_manifest import RUN_FILE, KeptRun
from compactor.originals.originals_keeper import OriginalsKeeper
from compactor.originals.undo import UndoReport, undo_outlook, undo_run
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import Config, load_config
from storage.file_names import LOG, SNAPSHOT, TIME_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats import (
    checkpoint,
    leader_epoch_checkpoint,
    partition_metadata,
    producer_snapshot,
)
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT, EpochEntry
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from tests.compactor.originals.test_undo import PowerLoss, losing_power
from tests.compactor.plan_logs import plan_log_dirs
from tests.support.files.watched import WatchedDisk
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    INTERVAL_BYTES,
    batch,
    keyed,
    make_partition,
    record,
    write_segment,
)
from tests.support.reference_batch import ReferenceBatch, decode, encode, split
from tests.support.reference_files import indexes
from tests.undo.model import Files

NAME, KEY = "orders-0", ("orders", 0)
NOW_MS = 1_700_000_000_000
LATER_MS = 1_000_000  # than every horizon
LAG_MS, RETENTION_MS = 60_000, 1_000
CHANGES_OF_A_RUN = 45  # about
_COMPACT = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": "600",
    "min.compaction.lag.ms": str(LAG_MS),
    "delete.retention.ms": str(RETENTION_MS),
}


class Kind:
    """What a log is at first, and how its topic is configured."""

    def __init__(self, base_offset: int, has_id: bool, **settings: str) -> None:
        self.base_offset, self.has_id = base_offset, has_id
        self.config: Config = load_config(
            settings=_COMPACT | {name.replace("_", "."): value for name, value in settings.items()}
        )


KINDS = {
    "compacted": Kind(0, has_id=True),
    "of an older broker": Kind(0, has_id=False),
    "retained by size": Kind(
        100, has_id=True, cleanup_policy="compact,delete", retention_bytes="3500"
    ),
    "retained by time": Kind(
        100, has_id=True, cleanup_policy="compact,delete", retention_ms="1000"
    ),
}


def _large(first: int, *keys: str) -> ReferenceBatch:
    """So large that its segment is a group by itself."""
    return batch(*(record(first + i, key.encode(), b"v" * 900) for i, key in enumerate(keys)))


def first_segments(base: int) -> dict[int, list[ReferenceBatch]]:
    """Some that a run merges, some that it leaves, one that is too young, and the active one."""
    young = batch(
        *(record(base + 17 + i, key, b"young", NOW_MS - 1000) for i, key in enumerate((b"m", b"z")))
    )
    layout = {
        0: [_large(base, "u", "v", "w")],
        3: [keyed(base + 3, "ab"), keyed(base + 5, "aC")],
        7: [keyed(base + 7, "xy")],  # of this nothing is left
        9: [_large(base + 9, "m", "n", "o")],
        12: [keyed(base + 12, "xA"), keyed(base + 14, "xay")],
        17: [young],
        19: [keyed(base + 19, "y")],
    }
    return {base + offset: batches for offset, batches in layout.items()}


class World:
    """The log directory, and what runs have kept beside it."""

    def __init__(self, root: Path, kind: Kind, local: LocalRound, rng: random.Random) -> None:
        self.kind, self.local, self.rng = kind, local, rng
        self.root, self.log_dir = root, root / "logs"
        self.partition, self.originals = self.log_dir / NAME, root / "originals"
        self._now_ms, self._topics, self._runs = NOW_MS, 0, 0
        self._is_cut_short = False  # and not settled
        self._make(first_segments(kind.base_offset))

    # what there is

    def logs(self) -> Files:
        """Every .log, as it is once what was cut short is settled."""
        with self._settled(self._is_cut_short) as partition:
            return {path.name: path.read_bytes() for path in sorted(partition.glob("*.log"))}

    def everything(self) -> dict[str, bytes]:
        """Every file that recovery leaves, and the checkpoints; one without entries is none."""
        with self._settled() as partition:
            found = {
                str(path.relative_to(partition.parent)): path.read_bytes()
                for path in sorted(partition.parent.rglob("*"))
                if path.is_file() and path.name != ".lock"
            }
        return {name: data for name, data in found.items() if data != b"0\n0\n"}

    def entries(self) -> tuple[int | None, int | None]:
        """Of the log, in the checkpoints of the cleaner and of log starts."""
        names = checkpoint.CLEANER_OFFSET, checkpoint.LOG_START
        cleaner, start = (checkpoint.read(str(self.log_dir / name)).get(KEY) for name in names)
        return cleaner, start

    @contextmanager
    def _settled(self, is_needed: bool = True) -> Iterator[Path]:
        if not is_needed:
            yield self.partition
            return
        copy = self.root / "settled"
        shutil.copytree(self.log_dir, copy)
        recover_log_dir(str(copy))
        yield copy / NAME
        shutil.rmtree(copy)

    # what we do

    def run(self, is_late: bool = False, keep: bool = True, is_killed: bool = False) -> Path | None:
        """Where it has kept something, if it was told to."""
        self.recover()
        self._now_ms += LATER_MS if is_late else 100
        log_dir, keeper = str(self.log_dir), None
        files = self._losing_power(of_keeper=int(keep)) if is_killed else LOCAL
        if keep:
            self._runs += 1
            run = KeptRun(f"{self._runs:08x}", self._now_ms, (log_dir,))
            keeper = OriginalsKeeper(str(self.originals), run, files)
        self.local.originals, self.local.disk = keeper, files
        try:
            plan = plan_log_dirs([log_dir], self.kind.config, self._now_ms)
            with suppress(PowerLoss):
                self.local.run(plan)
        finally:
            self._is_cut_short = is_killed
            if keeper is not None:
                keeper.close()
        return None if keeper is None else Path(keeper.path)

    def recover(self) -> None:
        recover_log_dir(str(self.log_dir))
        self._is_cut_short = False

    def undo(self, run_dir: Path, is_killed: bool) -> list[UndoReport] | None:
        """None where there is nothing to undo. Killed, it is begun once more."""
        if not (run_dir / RUN_FILE).exists():
            return None
        if is_killed:
            with suppress(PowerLoss):
                undo_run(str(run_dir), files=self._losing_power())
        self._is_cut_short = False
        before = self._everything()
        expected = undo_outlook(str(run_dir))
        assert self._everything() == before, "a dry run has changed something"
        found = undo_run(str(run_dir))
        assert found == expected, "the dry run said otherwise"
        return found

    def _everything(self) -> dict[str, bytes]:
        paths = [path for path in self.log_dir.parent.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in paths}

    def discard(self, run_dir: Path) -> None:
        kept_run.discard(str(run_dir))

    def _losing_power(self, of_keeper: int = 0) -> WatchedDisk:
        """of_keeper: changes that are made before the run begins."""
        return losing_power(of_keeper + self.rng.randrange(CHANGES_OF_A_RUN))

    # what a broker does

    def append(self) -> Files:
        """To the active segment, and to a new one; what was written."""
        self.recover()
        active = max(self.partition.glob("*.log"))
        base_offset = int(active.stem)
        data = active.read_bytes()
        batches = [decode(raw) for raw in split(data)]
        end_offset = batches[-1].last_offset + 1 if batches else base_offset
        words = self.rng.choice(("ab", "Axy", "Uvz", "mA", "yM"))
        more = encode(keyed(end_offset, words))
        with active.open("ab") as out:
            out.write(more)
        _, time_index = indexes([*split(data), more], base_offset, INTERVAL_BYTES)
        path = active.with_suffix(TIME_INDEX)
        path.unlink()  # it may be linked to what was kept
        path.write_bytes(time_index)
        rolled_at = end_offset + len(words)
        self._write(rolled_at, [keyed(rolled_at, "z")])
        name = file_name(rolled_at, LOG)
        return {active.name: more, name: (self.partition / name).read_bytes()}

    def retain(self) -> None:
        """Let the oldest segment go. Log starts that are base offsets get no entry."""
        self.recover()
        first, *others = sorted(self.partition.glob("*.log"))
        if not others:
            return
        for path in self.partition.glob(f"{first.stem}.*"):
            path.unlink()
        self._forget(checkpoint.LOG_START)
        epochs = str(self.partition / LEADER_EPOCH_CHECKPOINT)
        leader_epoch_checkpoint.write(epochs, [EpochEntry(0, int(others[0].stem))])

    def lose(self) -> None:
        """Without the lock, and a start of a broker that would settle anything."""
        self._forget(checkpoint.CLEANER_OFFSET)

    def anew(self) -> None:
        """With what was written before, for all that its files tell, or with something else."""
        alike = self.logs() if self.kind.has_id and self.rng.random() < 0.5 else None
        shutil.rmtree(self.partition)
        for name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START):
            self._forget(name)
        if alike is not None:
            self._make({int(name[:20]): list(split(data)) for name, data in alike.items()})
        else:
            self._make({0: [keyed(0, "pq")], 2: [keyed(2, "rp")], 4: [keyed(4, "s")]})

    def _make(self, segments: Mapping[int, Sequence[bytes | ReferenceBatch]]) -> None:
        self._topics += 1
        make_partition(self.log_dir, {}, NAME)
        for base_offset, batches in segments.items():
            self._write(base_offset, batches)
        epochs = str(self.partition / LEADER_EPOCH_CHECKPOINT)
        leader_epoch_checkpoint.write(epochs, [EpochEntry(0, min(segments))])
        if self.kind.has_id:
            metadata = PartitionMetadata(0, UUID(int=self._topics))
            partition_metadata.write(str(self.partition / PARTITION_METADATA), metadata)

    def _write(self, base_offset: int, batches: Sequence[bytes | ReferenceBatch]) -> None:
        write_segment(self.partition, base_offset, batches)
        producer_snapshot.write(str(self.partition / file_name(base_offset, SNAPSHOT)), [])

    def _forget(self, name: str) -> None:
        """Take the entry of the log out of a checkpoint."""
        path = str(self.log_dir / name)
        entries = checkpoint.read(path)
        if entries.pop(KEY, None) is not None:
            checkpoint.write(path, entries)
