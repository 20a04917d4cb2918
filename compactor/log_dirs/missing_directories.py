"""Report logs whose whole directory is gone, though the metadata log has them in a log directory.

A broker that starts makes an empty log in its place. Only a metadata log that has the topic, and
its replica in this very log directory, shows that, or the manifest of a copy: a copy of some topics
looks the same otherwise. Without one, what the checkpoints name and nobody places is for people to
judge. Where a checkpoint lists the logs of the directory, and not this one, a broker had no time to
make it; where no checkpoint exists, as on a disk that was emptied, nothing says so.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

from compactor.errors import ConfigError, RefusedError
from compactor.host.printable import counted, first_few
from compactor.log_dirs.directory_state import MANIFEST, is_being_made, lacking_in
from compactor.log_dirs.missing_logs import NOT_ASKED, RecordedEnd, RecordedEnds, recorded_ends
from compactor.reason_codes import error_text
from compactor.settings.cluster_settings import (
    ClusterSettings,
    directory_id_of,
    registered_log_dirs,
)
from compactor.settings.directories_beside import settings_of_broker
from storage.errors import CorruptFileError
from storage.file_names import is_special_dir, parse_future_dir, parse_partition_dir
from storage.files.files import Files
from storage.formats.checkpoint import TopicPartition
from storage.formats.partition_metadata import encode_uuid
from storage.log.log_dir import LogDirListing


class LogDirEntries(NamedTuple):
    """The logs that are in a log directory, and those that its checkpoints name."""

    path: str
    names: frozenset[str]  # of what is in it
    ends: RecordedEnds = NOT_ASKED

    @property
    def present(self) -> frozenset[TopicPartition]:
        """Also those that are deleted or stray."""
        return frozenset(_named(self.names))


class MissingLog(NamedTuple):
    """A log whose directory is gone."""

    log_dir: str
    topic: str
    partition: int
    problem: str


class Gone(NamedTuple):
    """What one log directory does not have, though its checkpoints or its manifest name it."""

    log_dir: str
    logs: tuple[MissingLog, ...] = ()
    unplaced: tuple[TopicPartition, ...] = ()  # no metadata log says whether they belong here
    unsaid: str | None = None  # why nobody knows which logs a copy lacks

    @property
    def manifest(self) -> str:
        """What does not say it."""
        return os.path.join(self.log_dir, MANIFEST)

    def with_logs(self, logs: Iterable[MissingLog]) -> "Gone":
        """Add logs."""
        return self._replace(logs=(*self.logs, *logs))

    def of_topics(self, is_wanted: Callable[[str], bool]) -> "Gone":
        """Leave out what filters leave out."""
        return self._replace(
            logs=tuple(log for log in self.logs if is_wanted(log.topic)),
            unplaced=tuple(key for key in self.unplaced if is_wanted(key[0])),
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence without a full stop, if something is to be judged."""
        if not self.unplaced:
            return ()
        names = first_few([f"{topic}-{number}" for topic, number in self.unplaced])
        logs = counted(len(self.unplaced), "log")
        return (
            f"not in this directory, though its checkpoints name them: {logs} ({names}). "
            "That is so of a copy of chosen topics. A broker whose logs they are would begin them "
            "again as empty ones",
        )


def entries_of(listing: LogDirListing, ends: RecordedEnds, files: Files) -> LogDirEntries:
    """Those of a log directory that was listed."""
    names = {name for name, _ in listing.ignored if _exists(listing.path, name, files)}
    return LogDirEntries(
        listing.path, frozenset(names | {p.name for p in listing.partitions}), ends
    )


def entries_in(log_dir: str, files: Files, ends: RecordedEnds | None = None) -> LogDirEntries:
    """Look at a log directory. ends: where its checkpoints were read already."""
    directories, others = files.list_names(log_dir)
    directories += [name for name in others if _exists(log_dir, name, files)]
    known = recorded_ends(log_dir, files) if ends is None else ends
    return LogDirEntries(log_dir, frozenset(directories), known)


def gone_from(
    own: LogDirEntries,
    others: Iterable[str],
    files: Files,
    cluster: ClusterSettings | None = None,
    is_metadata_ignored: bool = False,
) -> Gone:
    """Look for logs without a directory in one log directory.

    others: log directories that may be of the same broker. cluster: what is known of it; None: its
    metadata log is looked for in all of these directories and in those beside them, unless it is to
    be ignored.
    """
    lacking: tuple[MissingLog, ...] = ()
    chosen_out: set[TopicPartition] = set()
    unsaid = None
    try:
        of_copy = lacking_in(own.path, own.names, files)
        lacking = tuple(_lacking(own.path, of_copy.missing))
        chosen_out = set(_named(of_copy.not_wanted))
    except (RefusedError, OSError) as error:
        unsaid = _problem_of(error)
    if own.ends.is_silent and is_being_made(own.path, files):  # its manifest comes last
        own = own._replace(ends=own.ends._replace(is_silent=False))
    found = _unlisted(own, others, files, cluster, is_metadata_ignored)
    known = {(log.topic, log.partition) for log in lacking} | chosen_out
    return Gone(
        own.path,
        (*lacking, *(log for log in found.logs if (log.topic, log.partition) not in known)),
        tuple(key for key in found.unplaced if key not in known),
        unsaid,
    )


def missing_directories(
    log_dirs: Sequence[LogDirEntries], cluster: ClusterSettings | None, files: Files
) -> Iterator[MissingLog]:
    """Yield those that the metadata log places in one of these directories."""
    if cluster is None or cluster.metadata is None or cluster.node_id is None:
        return
    here = frozenset().union(*(log_dir.present for log_dir in log_dirs))
    for log_dir in log_dirs:
        ends = log_dir.ends
        if not ends.is_silent and not ends.by_log.keys() - here:
            continue
        id_ = directory_id_of(log_dir.path, files)
        absent = {key for key in ends.by_log if key not in here and cluster.may_be_in(*key, id_)}
        if ends.is_silent and id_ is not None:
            absent |= cluster.placed_in(id_) - here
        for key in sorted(absent):
            if not _has_come(log_dir.path, key, files):
                yield MissingLog(log_dir.path, *key, _gone_text(ends.by_log.get(key)))


def logs_of_replaced(
    own: LogDirEntries, others: Sequence[str], files: Files
) -> tuple[MissingLog, ...]:
    """Give the logs that were on a disk whose place an empty log directory has taken.

    It is of the same broker, which is not registered with it, and is with another one that none of
    these is: a run is refused for that. others: the other log directories of the command.
    """
    if own.present or not own.ends.is_silent:
        return ()
    for path in others:
        cluster = None
        with suppress(ConfigError, CorruptFileError, OSError):  # who needs it reports it
            cluster, beside = settings_of_broker([path, own.path, *others], files)
        registered = registered_log_dirs(cluster)
        if cluster is None or not registered or own.path not in beside:
            continue
        known = (path, *beside)
        ids = {directory_id_of(each, files) for each in known}
        if directory_id_of(own.path, files) in registered:
            return ()
        here = frozenset().union(*(entries_in(each, files, NOT_ASKED).present for each in known))
        return tuple(
            MissingLog(own.path, *key, _replaced_text(id_))
            for id_ in registered
            if id_ not in ids
            for key in sorted(cluster.placed_in(id_) - here)
        )
    return ()


def _exists(log_dir: str, name: str, files: Files) -> bool:
    """A broker follows a link; a file of a log's name, and a link to nowhere, are no log."""
    return parse_partition_dir(name) is None or files.is_directory(os.path.join(log_dir, name))


def _problem_of(error: RefusedError | OSError) -> str:
    if isinstance(error, RefusedError):
        return error.problem
    return f"{error_text(error)}. Which logs this copy lacks is not known"


def _lacking(log_dir: str, missing: Mapping[str, str]) -> Iterator[MissingLog]:
    """Yield the logs that a copy should have, and has not. missing: why, by name."""
    for name, why in missing.items():
        key = parse_partition_dir(name)
        if key is not None and parse_future_dir(name) is None:
            problem = (
                f"it is not in this copy: {why} ({MANIFEST}); a broker that starts here begins it "
                "again as an empty log"
            )
            yield MissingLog(log_dir, *key, problem)


def _unlisted(
    own: LogDirEntries,
    others: Iterable[str],
    files: Files,
    cluster: ClusterSettings | None,
    is_metadata_ignored: bool,
) -> Gone:
    """Look for those that the checkpoints name."""
    ends = own.ends
    if not ends.is_silent and not ends.by_log.keys() - own.present:
        return Gone(own.path)
    settings: ClusterSettings | None = None
    beside: tuple[str, ...] = ()
    if not is_metadata_ignored:
        with suppress(ConfigError, CorruptFileError, OSError):  # who needs it reports it
            settings, beside = settings_of_broker([own.path, *others], files)
        if cluster is not None and cluster.metadata is not None:
            settings = cluster
    known = [own, *(entries_in(path, files, NOT_ASKED) for path in beside)]
    if settings is not None and settings.metadata is not None and not settings.is_contradicted:
        return Gone(own.path, tuple(missing_directories(known, settings, files)))
    here = frozenset().union(*(each.present for each in known))
    absent = sorted(ends.by_log.keys() - here)
    return Gone(
        own.path, unplaced=tuple(key for key in absent if not _has_come(own.path, key, files))
    )


def _has_come(log_dir: str, key: TopicPartition, files: Files) -> bool:
    """Say whether a broker at work has made a log since the directory was listed."""
    return files.is_directory(os.path.join(log_dir, f"{key[0]}-{key[1]}"))


def _gone_text(end: RecordedEnd | None) -> str:
    begins = "a broker that starts here begins it again as an empty log"
    if end is None:
        return (
            "its directory is gone: the metadata log places it here, and no checkpoint says "
            f"whether it had records; {begins}"
        )
    return (
        f"its directory is gone: {end.checkpoint} says that it had records up to offset "
        f"{end.offset}, and the metadata log places it here; {begins}"
    )


def _replaced_text(directory_id: UUID) -> str:
    return (
        f"the metadata log places it in directory.id {encode_uuid(directory_id)}, which is none of "
        "these directories, and this one, which is empty, is not registered; a broker that starts "
        "here begins it again as an empty log"
    )


def _named(names: Iterable[str]) -> Iterator[TopicPartition]:
    """The logs that directories are of: one to be deleted and a stray one, too.

    Not one that a log is being moved to (`-future`): where only that is left, a broker begins the
    log again as an empty one, and empties it, too.
    """
    for name in names:
        key = parse_partition_dir(name.rpartition(".")[0] if is_special_dir(name) else name)
        if key is not None and parse_future_dir(name) is None:
            yield key
