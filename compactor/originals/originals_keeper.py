"""Keep what a run replaces or deletes, so that it can be undone.

1. before the first step of a log all of its segments are read, and what they are is written down
2. files get a second name in the run's directory: links, or copies that are synced
3. that directory is synced, then the manifest of the step is written and synced
4. the swap or the deletion begins

After a crash in 1 or 2 the run's directory has a directory without a manifest, which nobody looks
at; after 3 a step that has not happened, which `undo` sees by the files of the log.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.source_identity import check_in_place, with_second_name
from compactor.finalizer import StagedGroup
from compactor.log_dirs import kept_files
from compactor.log_dirs.kept_files import FileMark
from compactor.originals.kept_manifest import (
    LOG_FILE,
    RUN_FILE,
    KeptRun,
    KeptStep,
    LogBefore,
    document,
    step_name,
)
from compactor.originals.kept_run import held
from compactor.outcome.round_report import OriginalsReport
from compactor.planning.round_plan import RoundPlan
from storage.file_names import LOG, SEGMENT_SUFFIXES, SNAPSHOT, file_name
from storage.files.files import Disk, Files, entry_of
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import topic_id_of
from storage.log.log_dir import list_partition, log_end_offset
from storage.log.retention import Deletion


@dataclass(slots=True)
class _KeptSoFar:
    """Of one log."""

    marks: dict[str, FileMark]  # of the .log files that stand there by now
    steps: int = 0


class OriginalsKeeper:
    """What is kept of one run. Several logs may be worked at once, each by one thread."""

    def __init__(self, directory: str, run: KeptRun, files: Disk = LOCAL) -> None:
        """Make the run's directory in `directory`, which is made too.

        The caller holds the locks of the log directories, and has not begun to change anything.
        Raise CorruptFileError or OSError; RefusedError where others could discard what is kept.
        """
        files.make_directories(directory)
        self.path, self._files = os.path.join(directory, run.run_id), files
        self._numbers = {log_dir: number for number, log_dir in enumerate(run.log_dirs)}
        self._cleaner = _entries(files, run.log_dirs, checkpoint.CLEANER_OFFSET)
        self._log_starts = _entries(files, run.log_dirs, checkpoint.LOG_START)
        self._left: dict[str, dict[TopicPartition, int]] = {}  # cleaner entries after the round
        self._logs: dict[tuple[str, TopicPartition], _KeptSoFar] = {}
        self._counting = threading.Lock()
        self._counted = OriginalsReport(self.path, 0, 0, 0)
        files.make_directory(self.path)
        files.replace_file(os.path.join(self.path, RUN_FILE), document(run))
        self._held = contextlib.ExitStack()
        try:
            self._held.enter_context(held(self.path, files))
        except BaseException:
            files.discard_directory(self.path)  # nothing is kept yet
            raise

    def close(self) -> None:
        """The run is over: what is kept may be discarded."""
        self._held.close()

    def report(self) -> OriginalsReport:
        """What is kept by now."""
        return self._counted

    def keep_group(self, plan: LogPlan, group: StagedGroup) -> StagedGroup:
        """Before a group is swapped; the group with its sources as they are then.

        OSError, CorruptFileError, LogChangedError: nothing may be swapped.
        """
        for source in group.sources:
            check_in_place(source, self._files)
        names = _names(self._files, group.path, [source.base_offset for source in group.sources])
        put = [
            kept_files.mark_of(self._files, staged, file_name(segment.base_offset, kind))
            for segment in group.destinations
            for kind, staged in segment.files.items()
        ]
        facts = KeptStep(number=0, originals=(), put=tuple(put), cleaned_to=plan.end_offset)
        self._keep(plan.log_dir, (plan.topic, plan.partition), group.path, facts, names)
        linked = tuple(with_second_name(source, self._files) for source in group.sources)
        return group._replace(sources=linked)

    def keep_deletion(
        self, log_dir: str, key: TopicPartition, path: str, deletion: Deletion
    ) -> None:
        """Before retention does anything to a log: a step for each segment that goes."""
        if log_dir not in self._left:  # the cleaning is over
            self._left |= _entries(self._files, [log_dir], checkpoint.CLEANER_OFFSET)
        cleaned_to, start = self._left[log_dir].get(key, 0), deletion.log_start_offset
        facts = KeptStep(
            number=0,
            originals=(),
            put=(),
            cleaned_to=cleaned_to,
            deleted_up_to=start,
            rolled_at=deletion.rolls_at,
        )
        own = [LEADER_EPOCH_CHECKPOINT]
        for segment in deletion.segments:
            names = _names(self._files, path, [segment.base_offset])
            present = [name for name in own if self._files.exists(os.path.join(path, name))]
            self._keep(log_dir, key, path, facts, [*names, *present])
            own = []

    def _keep(
        self,
        log_dir: str,
        key: TopicPartition,
        path: str,
        facts: KeptStep,
        names: Iterable[str],
    ) -> None:
        log = os.path.join(self.path, str(self._numbers[log_dir]), f"{key[0]}-{key[1]}")
        for directory in (os.path.dirname(log), log):
            with contextlib.suppress(FileExistsError):
                self._files.make_directory(directory)
        so_far = self._logs.get((log_dir, key)) or self._begin(log_dir, key, path, log)
        manifest = os.path.join(log, step_name(so_far.steps))
        kept = os.path.splitext(manifest)[0]
        self._files.make_directory(kept)
        try:
            originals = tuple(
                kept_files.keep(
                    self._files,
                    os.path.join(path, name),
                    os.path.join(kept, name),
                    so_far.marks.get(name),
                )
                for name in names
            )
            self._files.sync_directory(kept)
            sizes = _linked_and_copied(self._files, path, kept, originals)
            step = facts._replace(number=so_far.steps, originals=originals)
            self._files.replace_file(manifest, document(step))
        except OSError:
            self._files.discard_directory(kept)  # a full disk gets its room back
            raise
        for mark in originals:
            so_far.marks.pop(mark.name, None)
        so_far.marks |= {mark.name: mark for mark in step.put if mark.name.endswith(LOG)}
        so_far.steps += 1
        self._count(len(originals), *sizes)

    def _begin(self, log_dir: str, key: TopicPartition, path: str, log: str) -> _KeptSoFar:
        """Write down what the log is before its first step."""
        listing = list_partition(path, *key, self._files)
        names = [file_name(segment.base_offset, LOG) for segment in listing.segments]
        before = LogBefore(
            topic_id_of(path, self._files),
            tuple(kept_files.mark_of(self._files, os.path.join(path, name)) for name in names),
            log_end_offset(listing),
            self._cleaner[log_dir].get(key),
            self._log_starts[log_dir].get(key),
        )
        self._files.replace_file(os.path.join(log, LOG_FILE), document(before))
        so_far = _KeptSoFar({mark.name: mark for mark in before.segments})
        self._logs[log_dir, key] = so_far
        return so_far

    def _count(self, files: int, linked_bytes: int, copied_bytes: int) -> None:
        with self._counting:
            before = self._counted
            self._counted = OriginalsReport(
                self.path,
                before.files + files,
                before.linked_bytes + linked_bytes,
                before.copied_bytes + copied_bytes,
            )


def open_keeper(
    directory: str, run_id: str, started_at_ms: int, plan: RoundPlan, files: Disk = LOCAL
) -> OriginalsKeeper:
    """What keeps the originals of any log in the directories of a plan.

    A plan after a split may take on others than this one.
    """
    log_dirs = tuple(facts.path for facts in plan.log_dirs if facts.problem is None)
    return OriginalsKeeper(directory, KeptRun(run_id, started_at_ms, log_dirs), files)


def _entries(
    files: Files, log_dirs: Sequence[str], name: str
) -> dict[str, dict[TopicPartition, int]]:
    return {log_dir: checkpoint.read(os.path.join(log_dir, name), files) for log_dir in log_dirs}


def _names(files: Files, path: str, base_offsets: Sequence[int]) -> list[str]:
    """The files of these segments, and their snapshots: one that stays a recovery may remove."""
    names = [file_name(base, kind) for base in base_offsets for kind in SEGMENT_SUFFIXES]
    names += [file_name(base, SNAPSHOT) for base in base_offsets]
    return [name for name in names if files.exists(os.path.join(path, name))]


def _linked_and_copied(
    files: Files, path: str, kept: str, originals: Iterable[FileMark]
) -> tuple[int, int]:
    """Count the bytes of originals that are links, and those that are copies."""
    linked, copied = 0, 0
    for mark in originals:
        one, other = (entry_of(files, os.path.join(place, mark.name)) for place in (path, kept))
        if (one.inode, one.device) == (other.inode, other.device):
            linked += mark.size_bytes
        else:
            copied += mark.size_bytes
    return linked, copied
