"""A log directory: whose it is, whether it may be changed, its lock, its room, how it was left.

Takes no lock, and writes nothing.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from compactor.diagnosis.checks import Check, fail, ok, warn, with_command
from compactor.errors import ConfigError
from compactor.host.machine import user_name
from compactor.host.printable import (
    counted,
    few,
    first_few,
    iso_time,
    printable,
    size_text,
    span_text,
)
from compactor.host.shell_commands import compactor
from compactor.log_dirs.brokers import by_broker
from compactor.log_dirs.locked_log_dirs import LOCK_FILE
from compactor.log_dirs.missing_directories import entries_in, gone_from
from compactor.log_dirs.missing_logs import START_NO_BROKER, recorded_ends
from compactor.log_dirs.preconditions import Obstacle
from compactor.log_dirs.survey import foreign_files
from compactor.outcome.round_report import LogReport
from compactor.planning.remedies import REMEDIES, all_described, typed_by
from compactor.reason_codes import Reason, ReasonCode, error_text, is_log_missing
from compactor.recovery.whole_logs import why_not_whole
from compactor.settings.cluster_settings import (
    ClusterSettings,
    MetadataSource,
    read_cluster_settings,
)
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import checkpoint, meta_properties
from storage.log.cluster_metadata import METADATA_DIR
from storage.log.log_dir import LogDirListing, PartitionListing, list_log_dir

CLOCKS_DIFFER_MS = 5 * 60_000
RECORDS = "records"  # the subject of the check that says that some are gone
_SHOWN = 3
_WHICH_METADATA = (
    "Give the broker's directory with __cluster_metadata-0, too: it says whether they belong here."
)


class Foreseen(NamedTuple):
    """What is known of a run on all log directories of a command."""

    obstacles: Sequence[Obstacle] = ()
    not_cleaned: Sequence[LogReport] = ()  # logs that it would set aside or fail at
    log_dirs: Sequence[str] = ()  # all that were given


NOTHING = Foreseen()
_SUBJECTS = {
    ReasonCode.UNCLEAN_SHUTDOWN: "last shutdown",
    ReasonCode.REPLICATION_UNKNOWN: "high watermarks",
    ReasonCode.FILE_SYSTEM: "file system",
    ReasonCode.LOCK_HELD: "lock",
    ReasonCode.BROKER_RUNNING: "lock",
}


def log_dir_checks(log_dir: str, now_ms: int, run: Foreseen = NOTHING) -> list[Check]:
    """Look at all that concerns one log directory, which can be listed."""
    listing = list_log_dir(log_dir, LOCAL)
    found = [
        _identity(log_dir, listing),
        _permissions(log_dir, listing),
        _file_system(log_dir),
        ok("lock", "free: no broker and no run works there"),
        ok("last shutdown", "clean"),
        ok("high watermarks", f"in {checkpoint.REPLICATION}"),
        settings_check(listing, run.log_dirs or (log_dir,), now_ms),
        _free_space(log_dir, listing),
        _times(listing, now_ms),
        _foreign(listing),
    ]
    failed = obstacle_checks([o for o in run.obstacles if _is_in(o, log_dir)])
    subjects = {check.subject for check in failed}
    kept = [check for check in found if check.subject not in subjects]
    own = [report for report in run.not_cleaned if report.log_dir == log_dir]
    return [*failed, *kept, *_not_cleaned(log_dir, own), *_not_whole(listing, own)]


def obstacle_checks(obstacles: Iterable[Obstacle]) -> list[Check]:
    """What is in the way of a run, in its words."""
    return [fail(_subject(each), each.problem, each.remedy) for each in obstacles]


def _subject(obstacle: Obstacle) -> str:
    name = os.path.basename(obstacle.path or "")
    if name == LOCK_FILE:
        return "lock"
    if name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START):
        return "checkpoints"
    return _SUBJECTS.get(obstacle.reason_code, "a run")


def _is_in(obstacle: Obstacle, log_dir: str) -> bool:
    path = obstacle.path
    return path is not None and (path == log_dir or path.startswith(log_dir.rstrip("/") + "/"))


def _not_cleaned(log_dir: str, reports: Sequence[LogReport]) -> list[Check]:
    own = [report for report in reports if not is_log_missing(report)]
    if not own:
        return []
    texts = [f"{printable(f'{log.topic}-{log.partition}')}: {log.reason}" for log in own]
    found = f"a run would not clean {counted(len(own), 'log')}: {few(texts, _SHOWN, '; ')}"
    return [fail("logs", found, with_command("This says what helps:", compactor("plan", log_dir)))]


def _not_whole(listing: LogDirListing, reports: Iterable[LogReport]) -> list[Check]:
    """A check of the logs that a run has nothing to say of, as where no source has a policy."""
    reported = {(report.topic, report.partition) for report in reports}
    found = []
    for log in listing.partitions:
        if (log.topic, log.partition) in reported or log.name == METADATA_DIR:
            continue
        with suppress(OSError):  # what may not be read is said with the permissions
            why = why_not_whole(LOCAL, listing.path, log.topic, log.partition)
            found += [] if why is None else [f"{printable(log.name)}: {why.text}"]
    if not found:
        return []
    advice = with_command("This says what helps:", compactor("verify", listing.path))
    return [fail("logs", few(found, _SHOWN, "; "), advice)]


def _identity(log_dir: str, listing: LogDirListing) -> Check:
    logs = counted(len(listing.partitions), "log")
    size = sum(segment.log_bytes for log in listing.partitions for segment in log.segments)
    found = f"{logs}, {size_text(size)}"
    try:
        known = meta_properties.read(log_dir, LOCAL)
    except FileNotFoundError:
        advice = "That is so of a copy of some topics. Otherwise look whether it is the right one."
        return warn("log directory", f"{found}; no meta.properties in it", advice)
    except CorruptFileError as error:
        advice = "A run does not need it. A broker does not start with it."
        return warn("log directory", f"{found}; {error}", advice)
    if known.node_id is None:
        return ok("log directory", f"{found}; meta.properties does not say of which broker")
    return ok("log directory", f"{found}; broker {known.node_id} of cluster {known.cluster_id}")


def missing_log_checks(log_dir: str, others: Sequence[str]) -> list[Check]:
    """A check only where something is wrong, or may be: it stands first then."""
    listing = list_log_dir(log_dir, LOCAL)
    ends = recorded_ends(listing.path, LOCAL)
    gone = gone_from(entries_in(listing.path, LOCAL, ends), others, LOCAL)
    missing = [f"{printable(log.topic)}-{log.partition}: {log.problem}" for log in gone.logs]
    missing += [
        f"{printable(log.name)}: {found.text}"
        for log in listing.partitions
        if (found := ends.why_missing(log)) is not None
    ]
    if gone.unsaid is not None:
        missing.append(gone.unsaid)
    if not missing:
        return [warn(RECORDS, notice, _WHICH_METADATA) for notice in gone.notices]
    advice = f"{START_NO_BROKER} Bring the files back from a backup that has them."
    return [fail(RECORDS, few(missing, _SHOWN, "; "), advice)]


def _permissions(log_dir: str, listing: LogDirListing) -> Check:
    found = LOCAL.status(log_dir)
    owner = user_name(found.st_uid)
    me = user_name(os.geteuid())
    paths = [log_dir, *(log.path for log in listing.partitions)]
    closed = [path for path in paths if not LOCAL.is_permitted(path, os.R_OK | os.W_OK | os.X_OK)]
    if closed:  # a failure only if a run would come to it, and then said by itself
        advice = with_command("Run it as the owner:", typed_by(found, "plan", log_dir))
        return warn(
            "permissions", f"{me} may not read and write {first_few(closed, _SHOWN)}", advice
        )
    if me == owner:
        return ok("permissions", f"{me} owns it, and may read and write every log")
    sentence = "Plan and run as the owner, so that the broker can write all that it finds:"
    advice = with_command(sentence, typed_by(found, "plan", log_dir))
    return warn("permissions", f"{me} may read and write every log, and {owner} owns it", advice)


def _file_system(log_dir: str) -> Check:
    mount = LOCAL.mount_of(log_dir)
    if mount is None:  # which is in the way of a run, and said so
        return warn("file system", "of an unknown type", "Look at what is mounted there.")
    return ok(
        "file system", f"{mount.type} at {mount.mount_point}: a lock on it keeps a broker out"
    )


def _free_space(log_dir: str, listing: LogDirListing) -> Check:
    state = LOCAL.file_system_status(log_dir)
    free = state.f_bavail * state.f_frsize
    largest = max(listing.partitions, key=_size, default=None)
    found = f"{size_text(free)} free"
    if largest is None or free >= _size(largest):
        return ok("room", found)
    name = f"{largest.topic}-{largest.partition}"
    sentences = (
        "A log is rewritten beside the old one. Retention, or moving a log away, makes room. This "
        "says which logs would be left out:"
    )
    return warn(
        "room",
        f"{found}, and the largest log, {printable(name)}, has {size_text(_size(largest))}",
        with_command(sentences, compactor("plan", log_dir)),
    )


def _size(log: PartitionListing) -> int:
    return sum(segment.log_bytes for segment in log.segments)


def _foreign(listing: LogDirListing) -> Check:
    names = foreign_files(listing.partitions)
    if not names:
        return ok("foreign files", "none in partition directories")
    found = f"{counted(len(names), 'file')} not of Kafka's: {first_few(names)}"
    advice = "Look whose they are: no command changes such a file, and --output copies it."
    return warn("foreign files", found, advice)


def _times(listing: LogDirListing, now_ms: int) -> Check:
    latest = max(
        (segment.log_mtime_ns for log in listing.partitions for segment in log.segments), default=0
    )
    ahead_ms = latest // 1_000_000 - now_ms
    if ahead_ms > CLOCKS_DIFFER_MS:
        return warn(
            "times of files",
            f"the youngest was written {span_text(ahead_ms)} after this machine's clock",
            "Set this machine's clock right (timedatectl); logs written after it are passed over.",
        )
    if not latest:
        return ok("times of files", "there are none")
    return ok("times of files", f"the youngest is of {iso_time(latest // 1_000_000)}")


_SUBJECT = "settings of topics"
_PASSED_OVER = (ReasonCode.TOPIC_DELETED, ReasonCode.TOPIC_ID_MISMATCH)


def settings_check(listing: LogDirListing, all_log_dirs: Sequence[str], now_ms: int) -> Check:
    """Check what a broker's own files say of its topics. all_log_dirs: all log directories."""
    try:
        brokers = by_broker(all_log_dirs, LOCAL)
        own = next(each.log_dirs for each in brokers if listing.path in each.log_dirs)
        cluster = read_cluster_settings(own, MetadataSource(), LOCAL, now_ms)
    except (ConfigError, CorruptFileError) as error:
        return fail(_SUBJECT, str(error))
    if cluster is None or cluster.metadata is None:
        return warn(
            _SUBJECT,
            f"no {METADATA_DIR} here; by default it is in the first of log.dirs",
            with_command(
                "Give that directory too, or --metadata DIR. If there is none: --topic-configs "
                "FILE with what this prints:",
                all_described(),
            ),
        )
    notices = "; ".join(cluster.notices)
    set_aside = [] if cluster.doubt else list(_set_aside(listing, cluster))
    reason = cluster.doubt or (set_aside[0][1] if set_aside else None)
    if reason is not None:
        advice = f"Logs are set aside: {REMEDIES[reason.code].briefly}."
        return fail(_SUBJECT, _named(set_aside) if set_aside else notices, advice)
    if notices:
        return warn(_SUBJECT, notices, "A run says the same, and works.")
    return ok(_SUBJECT, f"in {cluster.metadata.path}, the cluster's metadata log")


def _named(set_aside: Sequence[tuple[PartitionListing, Reason]]) -> str:
    found = [f"{printable(log.name)}: {why.text}" for log, why in set_aside]
    more = f" and {counted(len(found) - _SHOWN, 'more log')}" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _set_aside(
    listing: LogDirListing, cluster: ClusterSettings
) -> Iterator[tuple[PartitionListing, Reason]]:
    """Yield each log that a source sets aside, and why."""
    for log in listing.partitions:
        try:
            why = cluster.why_of_another_topic(log)
        except CorruptFileError as error:
            why = Reason(ReasonCode.DAMAGED, str(error))
        except OSError as error:
            why = Reason(ReasonCode.UNREADABLE, error_text(error))
        if why is not None and why.code not in _PASSED_OVER:
            yield log, why
