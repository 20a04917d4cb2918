"""Copies of `run --output`: the round runs on a copy of each log directory, ended by a manifest.

1. DIR is locked, and gets a directory `compactor-unfinished-copy`: no broker starts there.
2. The contents are copied (`copying.copier`). The original is neither locked nor changed.
3. The ordinary round runs in DIR. What an unclean shutdown left is recovered there.
4. Every file of DIR is read for its checksum, the manifest is written and is on disk; only then
   the directory of step 1 is removed. A copy with that directory is not finished.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from compactor.api.path_arguments import require_empty
from compactor.api.round_context import RoundContext
from compactor.copying.contents import Contents, contents_of
from compactor.copying.copier import CopiedLogDir, ToCopy, copy_log_dir
from compactor.copying.manifest import Manifest, files_in, marks_of, write
from compactor.errors import RefusedError
from compactor.host import machine
from compactor.host.clock import now_ms
from compactor.host.printable import counted, iso_time, size_text
from compactor.host.progress import COPY_STAGE, MANIFEST_STAGE, ChangeWatch, running_total
from compactor.log_dirs.directory_state import MANIFEST, NO_BROKER, UNFINISHED, lacking_in
from compactor.log_dirs.kept_files import FileMark
from compactor.log_dirs.locked_log_dirs import lock_log_dirs, require_working_locks
from compactor.log_dirs.preconditions import Obstacle, obstacles_to
from compactor.log_dirs.survey import require_high_watermarks
from compactor.outcome.round_report import (
    CleaningReport,
    CopyReport,
    LogReport,
    LogStatus,
    PhaseReport,
)
from compactor.reason_codes import ReasonCode
from compactor.settings.rules import RunOptions
from storage.file_names import parse_partition_dir
from storage.files.disk_hints import wait_until_freed
from storage.files.local import LOCAL
from storage.formats.copy_marks import set_mark, take_mark

OUTPUT = "--output"
_FILE_BYTES = 4096  # that a file takes beside its length, at most


@dataclass(slots=True)
class Copies:
    """The copies of one run, from the first look at what is to be copied."""

    context: RoundContext
    compacted_only: bool  # no other logs are wanted
    link: bool  # large files that nobody changes in place
    contents: tuple[Contents, ...]
    paths: tuple[str, ...]  # of the copies
    missing_before: list[dict[str, str]] = field(default_factory=list)  # in originals: copies, too
    copied: list[CopiedLogDir] = field(default_factory=list)
    seconds: float = 0  # that the copying took
    synced_by: dict[str, int] = field(default_factory=dict)  # by path: descriptor for `syncfs`

    def is_wanted_in(self, log_dir: str) -> Callable[[str], bool]:
        """Return a function that says whether a topic's logs of a log directory are wanted."""
        config = self.context.config_of(log_dir)
        return lambda topic: not self.compacted_only or config.topic(topic).is_compacted

    def reports(self) -> tuple[CopyReport, ...]:
        """Return a report of each copy to be made."""
        return tuple(
            CopyReport(
                source=contents.path,
                path=path,
                files=contents.file_count,
                bytes=contents.size_bytes,
                needed_bytes=contents.needed_bytes
                + contents.file_count * _FILE_BYTES
                - (contents.linkable_bytes if self.link else 0),
                linked_bytes=contents.linkable_bytes if self.link else 0,
                not_wanted=contents.not_wanted,
            )
            for contents, path in zip(self.contents, self.paths, strict=True)
        )


def copies_of(log_dirs: Sequence[str], options: RunOptions, context: RoundContext) -> Copies:
    """List what is to be copied, by names, sizes and times alone."""
    copies = Copies(
        context=context,
        compacted_only=options.compacted_only,
        link=options.link,
        contents=(),
        paths=options.output,
    )
    found = []
    for log_dir in log_dirs:
        contents = contents_of(log_dir, copies.is_wanted_in(log_dir), context.files)
        here = {log.name for log in contents.logs} | {*contents.not_wanted}
        lacking = lacking_in(log_dir, here, context.files)
        copies.missing_before.append(dict(lacking.missing))
        found.append(contents._replace(not_wanted=(*contents.not_wanted, *lacking.not_wanted)))
    return replace(copies, contents=tuple(found))


def require_space(copies: Copies, may_probe: bool = True) -> None:
    """Raise RefusedError where the copies would not fit.

    may_probe: whether a small file may be made for a moment, to see if they would share bytes.
    """
    needed: dict[int, int] = {}
    wait_until_freed()
    for contents, report in zip(copies.contents, copies.reports(), strict=True):
        place = report.path if LOCAL.exists(report.path) else os.path.dirname(report.path)
        device = LOCAL.status(place).st_dev
        before, found = needed.get(device, 0), LOCAL.file_system_status(place)
        free = found.f_bavail * found.f_frsize
        needed[device] = before + report.needed_bytes
        if needed[device] > free and may_probe and _shares(contents, place):
            needed[device] = before + report.files * _FILE_BYTES
        if needed[device] > free:
            raise RefusedError(
                f"no room: the copy takes {size_text(needed[device])} at {place}, "
                f"{size_text(free)} are free. Nothing was changed",
                ReasonCode.NO_ROOM,
            )


def _shares(contents: Contents, place: str) -> bool:
    """Return whether copies in a place would share the bytes of their originals."""
    return any(
        LOCAL.can_share(os.path.join(contents.path, log.name, entry.name), place)
        for log in contents.logs[:1]
        for entry in log.files[:1]
    )


def obstacles_to_copies(copies: Copies, allowed_file_systems: Sequence[str]) -> list[Obstacle]:
    """Return why a run would refuse to make these copies. Takes no lock."""
    places = [path if LOCAL.exists(path) else os.path.dirname(path) for path in copies.paths]
    replicated = copies.context.config.assume_fully_replicated
    sources = [contents.path for contents in copies.contents]
    return obstacles_to(
        machine.require_open_files,
        partial(require_working_locks, places, allowed_file_systems),
        partial(require_high_watermarks, sources, replicated),
        partial(require_space, copies, may_probe=False),
    )


@contextmanager
def make_copies(
    copies: Copies, allowed_file_systems: Sequence[str], progress: ChangeWatch
) -> Iterator[None]:
    """Make the copies, and hold their locks.

    Raise OSError where they cannot be written; `progress` then knows what is left.
    """
    files, disk = copies.context.files, copies.context.disk
    require_space(copies)
    not_owned = dict.fromkeys(copies.paths, 0)
    for contents, path in zip(copies.contents, copies.paths, strict=True):
        if not files.exists(path):
            not_owned[path] = int(not disk.clone_directory(contents.path, path))
            files.sync_directory(os.path.dirname(path))
    with (
        lock_log_dirs(copies.paths, allowed_file_systems, after_unclean_shutdown=True),
        ExitStack() as opened,
    ):
        for path in copies.paths:
            require_empty(path, is_locked=True)  # another run may have been here since
            # before anything is written: errors of writing from before it was opened are not told
            copies.synced_by[path] = disk.open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, copies.synced_by[path])
        progress.copies = copies.paths
        for path in copies.paths:
            set_mark(path, UNFINISHED, files)
        began, advance = time.monotonic(), running_total(progress.advance)
        progress.stage(COPY_STAGE, sum(contents.size_bytes for contents in copies.contents))
        originals = zip(copies.contents, copies.paths, copies.missing_before, strict=True)
        for contents, path, missing in originals:
            wanted = ToCopy(contents, copies.is_wanted_in(contents.path), copies.link)
            done = copy_log_dir(wanted, path, advance, disk)
            done.not_owned += not_owned[path]
            done.missing |= missing
            copies.copied.append(done)
        copies.seconds = time.monotonic() - began
        yield


def finish_copies(copies: Copies, report: CleaningReport, progress: ChangeWatch) -> CleaningReport:
    """Write the manifests under the locks of the copies; return the report with the copies."""
    began, files = time.monotonic(), copies.context.files
    listed = [files_in(path, files) for path in copies.paths]
    size_bytes = sum(sum(sizes.values()) for sizes in listed)
    progress.stage(MANIFEST_STAGE, size_bytes)
    advance = running_total(progress.advance)
    found = []
    for each, sizes, planned in zip(copies.copied, listed, copies.reports(), strict=True):
        marks = marks_of(each.path, list(sizes), advance)
        manifest = _manifest(each, report, marks)
        found.append(_finish(each, planned, manifest, copies))
    progress.are_copies_whole = True
    copied_bytes = sum(contents.size_bytes for contents in copies.contents)
    return replace(
        report,
        copies=tuple(found),
        seconds=report.seconds + copies.seconds + time.monotonic() - began,
        logs=(*report.logs, *_missing(copies.copied)),
        warnings=(*report.warnings, *_warnings(copies.copied)),
        phases=(
            PhaseReport(COPY_STAGE, copies.seconds, copied_bytes),
            *report.phases,
            PhaseReport(MANIFEST_STAGE, time.monotonic() - began, size_bytes),
        ),
    )


def _manifest(each: CopiedLogDir, report: CleaningReport, marks: Sequence[FileMark]) -> Manifest:
    return Manifest(
        source=each.contents.path,
        run_id=report.run_id,
        version=report.version,
        finished_at=iso_time(now_ms()),
        kafka=_version_in(each.path, report),
        why_not=_why_no_broker(each),
        missing=each.missing,
        not_wanted=each.contents.not_wanted,
        files=tuple(marks),
    )


def _version_in(path: str, report: CleaningReport) -> str | None:
    versions = (use.choice.version.name for use in report.kafka if path in use.log_dirs)
    return next(versions, None)


def _finish(
    each: CopiedLogDir, planned: CopyReport, manifest: Manifest, copies: Copies
) -> CopyReport:
    """Sync a copy to disk, forbid brokers to start on it where needed, and write its manifest."""
    files = copies.context.files
    if manifest.why_not is not None:
        set_mark(each.path, NO_BROKER, files)
    copies.context.disk.sync_file_system(copies.synced_by[each.path], each.path)
    write(each.path, manifest, files)
    files.sync_directory(each.path)
    take_mark(each.path, UNFINISHED, files)
    return replace(
        planned,
        manifest=os.path.join(each.path, MANIFEST),
        why_not=manifest.why_not,
        missing=tuple(each.missing),
    )


def _why_no_broker(copied_dir: CopiedLogDir) -> str | None:
    if copied_dir.missing:
        return f"{counted(len(copied_dir.missing), 'log')} could not be copied"
    if copied_dir.contents.not_wanted:
        lacking = counted(len(copied_dir.contents.not_wanted), "log")
        return f"it lacks {lacking}, which a broker would make anew, and empty"
    if copied_dir.is_linked:
        source = copied_dir.contents.path
        return f"its files are hard links to those of {source}, and a broker changes files in place"
    return None


def _missing(copied_dirs: Sequence[CopiedLogDir]) -> Iterator[LogReport]:
    for each in copied_dirs:
        for name, why in each.missing.items():
            known = parse_partition_dir(name) or parse_partition_dir(name.rpartition(".")[0])
            topic, partition = known or (name, 0)
            yield LogReport(
                log_dir=each.path,
                topic=topic,
                partition=partition,
                status=LogStatus.FAILED,
                reason=f"not in the copy: {why}",
            )


def _warnings(copied_dirs: Sequence[CopiedLogDir]) -> Iterator[str]:
    for each in copied_dirs:
        if each.not_owned:
            yield (
                f"{each.path}: {counted(each.not_owned, 'file')} could not be given to the owner "
                "of the original, and belong to who ran this: change that (chown) before a "
                "broker's user starts there"
            )
        for name, why in each.contents.left_out:
            yield f"{os.path.join(each.contents.path, name)} is not in the copy: {why}"
