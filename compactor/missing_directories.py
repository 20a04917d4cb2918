"""Logs whose whole directory is gone, though checkpoints and the metadata log place them here.

A broker that starts makes an empty log in its place. Only a metadata log that has the topic, and
its replica in this very log directory, shows that: a copy of some topics looks the same otherwise.
Without one, what the checkpoints name and nobody places is for people to judge.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from compactor.cluster_settings import ClusterSettings, directory_id_of
from compactor.directories_beside import settings_of_broker
from compactor.errors import ConfigError
from compactor.host.printable import counted, first_few
from compactor.missing_logs import NOT_ASKED, RecordedEnds, recorded_ends
from storage.errors import CorruptFileError
from storage.file_names import is_special_dir, parse_future_dir, parse_partition_dir
from storage.files.files import Files
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import LogDirListing


class LogDirEntries(NamedTuple):
    """The logs that are in a log directory, and those that its checkpoints name."""

    path: str
    here: frozenset[TopicPartition]  # also those that are moved here, deleted or stray
    ends: RecordedEnds = NOT_ASKED


class MissingLog(NamedTuple):
    """A log whose directory is gone."""

    log_dir: str
    topic: str
    partition: int
    problem: str


class Gone(NamedTuple):
    """What the checkpoints of one log directory name and it does not have."""

    logs: tuple[MissingLog, ...] = ()
    unplaced: tuple[TopicPartition, ...] = ()  # no metadata log says whether they belong here

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence without a full stop, if there is something to judge."""
        if not self.unplaced:
            return ()
        names = first_few([f"{topic}-{number}" for topic, number in self.unplaced])
        logs = counted(len(self.unplaced), "log")
        return (
            f"not in this directory, though its checkpoints name them: {logs} ({names}). "
            "That is so of a copy of chosen topics. A broker whose logs they are would begin them "
            "again as empty ones",
        )


def entries_of(listing: LogDirListing, ends: RecordedEnds) -> LogDirEntries:
    """Those of a log directory that was listed."""
    here = {(log.topic, log.partition) for log in listing.partitions}
    here |= set(_named(name for name, _ in listing.ignored))
    return LogDirEntries(listing.path, frozenset(here), ends)


def missing_directories(
    log_dirs: Sequence[LogDirEntries], cluster: ClusterSettings | None, files: Files
) -> Iterator[MissingLog]:
    """Yield those that the metadata log places in one of these directories."""
    if cluster is None or cluster.metadata is None or cluster.node_id is None:
        return
    here = frozenset().union(*(log_dir.here for log_dir in log_dirs))
    for log_dir in log_dirs:
        absent = {key: end for key, end in log_dir.ends.by_log.items() if key not in here}
        directory_id = directory_id_of(log_dir.path, files) if absent else None
        for (topic, partition), end in absent.items():
            if directory_id is None or not cluster.is_placed(topic, partition, directory_id):
                continue
            problem = (
                f"its directory is gone: {end.checkpoint} says that it had records up to offset "
                f"{end.offset}, and the metadata log places it here; a broker that starts here "
                "begins it again as an empty log"
            )
            yield MissingLog(log_dir.path, topic, partition, problem)


def gone_from(
    log_dir: str,
    others: Iterable[str],
    files: Files,
    cluster: ClusterSettings | None = None,
    ends: RecordedEnds | None = None,
) -> Gone:
    """Look for logs without a directory in one log directory.

    others: log directories that may be of the same broker. cluster: what is known of it; None: its
    metadata log is looked for in all of these directories and in those beside them. ends: of the
    directory, where they were read already.
    """
    ends = recorded_ends(log_dir, files) if ends is None else ends
    own = LogDirEntries(log_dir, _here(log_dir, files), ends)
    if not ends.by_log.keys() - own.here:
        return Gone()
    try:
        settings, beside = settings_of_broker([log_dir, *others], files)
    except (ConfigError, CorruptFileError, OSError):  # who needs it reports it
        settings, beside = None, ()
    if cluster is not None and cluster.metadata is not None:
        settings = cluster
    known = [own, *(LogDirEntries(path, _here(path, files)) for path in beside)]
    if settings is not None and settings.metadata is not None and not settings.is_contradicted:
        return Gone(tuple(missing_directories(known, settings, files)))
    here = frozenset().union(*(each.here for each in known))
    return Gone(unplaced=tuple(sorted(ends.by_log.keys() - here)))


def _here(log_dir: str, files: Files) -> frozenset[TopicPartition]:
    directories, others = files.list_names(log_dir)
    return frozenset(_named([*directories, *others]))


def _named(names: Iterable[str]) -> Iterator[TopicPartition]:
    """The logs that directories are of: one to be deleted and a stray one, too.

    Not one that a log is being moved to (`-future`): where only that is left, a broker begins the
    log again as an empty one, and empties it, too.
    """
    for name in names:
        key = parse_partition_dir(name.rpartition(".")[0] if is_special_dir(name) else name)
        if key is not None and parse_future_dir(name) is None:
            yield key
