"""Read what a judgement of a start needs, names and small files, and judge it.

`conditions` judges what was read. For a metadata log that proves nothing, or not all, this module
judges what a start makes of the logs beside it. A broker that is its only controller goes on with
what it can read of that log, which may be nothing, and each log that the rest does not name is a
stray one. Where the quorum has other voters, the broker asks them.

Source: Kafka, KafkaRaftLog, QuorumController, LogManager.isStrayKraftReplica; spec F-16.4.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import NamedTuple

from compactor.broker_start.conditions import (
    QUORUM_STATE,
    is_of_broker,
    names_another,
    start_problems,
)
from compactor.errors import ConfigError
from compactor.host.second_process import map_in_two
from compactor.host.shell_commands import tool
from compactor.outcome.start_problems import (
    ClusterFacts,
    DirectoryFiles,
    PartitionFiles,
    StartOutcome,
    StartProblem,
    decoded_id,
    identity_of,
    partition_in,
)
from compactor.reason_codes import ReasonCode
from compactor.settings.cluster_settings import MetadataSource, read_cluster_settings
from compactor.settings.directories_beside import directories_beside
from compactor.settings.sources import SourceFinding, State
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown, meta_properties
from storage.formats.copy_marks import why_not_to_change
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.cluster_metadata import (
    METADATA_DIR,
    ClusterMetadata,
    SnapshotUse,
    newest_snapshot,
    read_cluster_metadata,
)

_LOSING = (State.EMPTY, State.NEVER_USED, State.DAMAGED)
_CUT_OFF = (State.TORN_AFTER_STOP, State.DAMAGED_END, State.SNAPSHOT)  # what is before, stays


class Depth(Enum):
    """How much of the logs is looked at."""

    NAMES = "names and small files"
    ENDS = "the end of each log, too, after a clean shutdown"
    LOADING = "all that a broker does after a clean shutdown"


class Look(NamedTuple):
    """How a start is looked into."""

    files: Files
    depth: Depth
    now_ms: int


def problems_at_start(
    log_dirs: Sequence[str], look: Look, others: Sequence[str] = ()
) -> list[StartProblem]:
    """Say what a broker comes to that starts on these directories, all of which are one broker's.

    others: directories that name another broker. One of them that the metadata log has for this
    broker, or that has its logs, is one of its directories all the same. OSError where something
    cannot be read.
    """
    files = look.files
    directories = [_directory(path, files) for path in log_dirs]
    cluster = _cluster(directories, files)
    if cluster is not None and cluster.log_dir_ids:
        named_others = [_directory(path, files) for path in others]
        directories += [each for each in named_others if is_of_broker(each, directories, cluster)]
    found = start_problems(directories, cluster)
    if not any(METADATA_DIR in each.dir_names for each in directories):
        found += _registered_beside(directories, files)
    for directory in directories:
        below = os.path.join(directory.path, "")
        if not any(problem.path.startswith(below) for problem in found):
            found += _of_logs(directory, look)
    has_logs = any(each.logs for each in directories)
    return [*(_of_metadata(log_dirs, directories, files) if has_logs else ()), *found]


def _has_other_voters(quorum: bytes | None, node_id: int | None) -> bool:
    """Whether a broker that starts asks others for what its metadata log lacks."""
    try:
        state = json.loads(quorum or b"{}")
        return any(voter["voterId"] != node_id for voter in state.get("currentVoters") or ())
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return False


def _directory(path: str, files: Files) -> DirectoryFiles:
    directories, _ = files.list_names(path)
    names = [
        name
        for name in sorted(directories)
        if name != METADATA_DIR and partition_in(name) is not None
    ]
    logs = map_in_two(partial(_log, path, files=files), names, files)
    return DirectoryFiles(
        path=path,
        dir_names=tuple(sorted(directories)),
        identity=_read(os.path.join(path, META_PROPERTIES), files),
        checkpoints={name: _read(os.path.join(path, name), files) for name in checkpoint.ALL},
        logs=tuple(logs),
        metadata_log=_log(path, METADATA_DIR, files) if METADATA_DIR in directories else None,
        quorum_state=_read(os.path.join(path, METADATA_DIR, QUORUM_STATE), files),
        marked=why_not_to_change(path, files),
    )


def _log(log_dir: str, name: str, files: Files) -> PartitionFiles:
    path = os.path.join(log_dir, name)
    directories, names = files.list_names(path)
    return PartitionFiles(
        dir_name=name,
        names=tuple(sorted(names)),
        epochs=_read_listed(path, LEADER_EPOCH_CHECKPOINT, names, files),
        metadata=_read_listed(path, PARTITION_METADATA, names, files),
        dir_names=tuple(sorted(directories)),
    )


def _read_listed(path: str, name: str, names: Sequence[str], files: Files) -> bytes | None:
    return _read(os.path.join(path, name), files) if name in names else None


def _read(path: str, files: Files) -> bytes | None:
    """None also for a directory, of which its name says enough."""
    try:
        return files.read_bytes(path)
    except FileNotFoundError:
        return None
    except CorruptFileError:
        found = files.look_up(path)
        if found is None or not found.is_dir:
            raise
        return None


def _cluster(directories: Sequence[DirectoryFiles], files: Files) -> ClusterFacts | None:
    """Say what the only metadata log of these says, if a broker goes on with it.

    It cuts a damaged end off. Then it asks the other controllers, if any.
    """
    places = [each.path for each in directories if METADATA_DIR in each.dir_names]
    if len(places) != 1:
        return None
    try:
        read = read_cluster_metadata(os.path.join(places[0], METADATA_DIR), files)
    except (CorruptFileError, FileNotFoundError):
        return None
    if not (read.topics or read.broker_log_dirs):
        return None
    known = [
        found for each in directories if isinstance(found := identity_of(each), MetaProperties)
    ]
    node_id = known[0].node_id if known else None
    if read.unread is not None and not read.is_torn:
        quorum = _read(os.path.join(read.path, QUORUM_STATE), files)
        if _has_other_voters(quorum, node_id):
            return None
    ids = read.broker_log_dirs.get(node_id, ()) if node_id is not None else ()
    return ClusterFacts(node_id, read.topics, ids, frozenset(read.broker_log_dirs))


def _registered_beside(
    directories: Sequence[DirectoryFiles], files: Files
) -> Iterator[StartProblem]:
    """Yield a directory that names another broker than a metadata log beside it has it for."""
    known = {each.path: identity_of(each) for each in directories}
    ids = {
        path: (decoded_id(each.directory_id), each)
        for path, each in known.items()
        if isinstance(each, MetaProperties) and each.directory_id
    }
    for place in directories_beside(list(ids), files):
        metadata_dir = os.path.join(place, METADATA_DIR)
        if not files.is_directory(metadata_dir):
            continue
        try:
            model = meta_properties.read(place, files)
            same = (model.cluster_id, model.node_id)
            if all((own.cluster_id, own.node_id) == same for _, own in ids.values()):
                continue
            registered = read_cluster_metadata(metadata_dir, files).broker_log_dirs
        except (CorruptFileError, UnsupportedFormatError, OSError):  # it says of no directory
            continue
        for path, (id_, own) in ids.items():
            nodes = [node for node, log_dirs in registered.items() if id_ in log_dirs]
            for node in nodes[:1]:
                yield from names_another(path, own, model._replace(node_id=node))


def _of_logs(directory: DirectoryFiles, look: Look) -> Iterator[StartProblem]:
    """After an unclean shutdown a start is looked into by a recovery, which judges each log."""
    if look.depth is Depth.NAMES:
        return
    from compactor.broker_start import loading  # with the storage engine

    is_clean = clean_shutdown.exists(directory.path, look.files)
    if look.depth is Depth.LOADING and is_clean:
        yield from loading.problems_of_loading(directory, look.now_ms, look.files)
    else:
        yield from loading.problems_of_ends(directory, is_clean, look.files)


def _of_metadata(
    log_dirs: Sequence[str], directories: Sequence[DirectoryFiles], files: Files
) -> Iterator[StartProblem]:
    """What a metadata log comes to that does not prove which topics exist.

    What is wrong with identities is said elsewhere.
    """
    try:
        cluster = read_cluster_settings(log_dirs, MetadataSource(), files)
    except (ConfigError, CorruptFileError):
        return
    if cluster is None or cluster.metadata is None:
        return
    torn = next((each for each in cluster.findings if each.state is State.SNAPSHOT_TORN), None)
    if torn is not None:
        yield from _of_torn_snapshot(torn, directories, files)
        return
    quorum = _read(os.path.join(cluster.metadata.path, QUORUM_STATE), files)
    if _has_other_voters(quorum, cluster.node_id):
        return
    for finding in cluster.findings:
        if _loses_logs(finding.state, cluster.metadata, directories):
            yield StartProblem(
                outcome=StartOutcome.LOGS_STRAY,
                path=finding.path,
                problem=finding.text,
                repair="Bring it back from a backup, or from another controller or broker of the "
                "cluster. If the cluster has other controllers, nothing has to be done: the broker "
                "fetches it from them.",
                reason_code=ReasonCode.METADATA_DAMAGED,
            )


def _loses_logs(
    state: State, metadata: ClusterMetadata, directories: Sequence[DirectoryFiles]
) -> bool:
    """Whether logs become stray ones for want of what cannot be read."""
    if state is State.TORN:
        return not (metadata.topics or metadata.broker_log_dirs)
    if state in _CUT_OFF:
        return not _names_all(metadata, directories)
    return state in _LOSING


def _names_all(metadata: ClusterMetadata, directories: Sequence[DirectoryFiles]) -> bool:
    """Whether it has each log of these directories."""
    keys = (partition_in(log.dir_name) for each in directories for log in each.logs)
    topics = metadata.topics
    return all(
        key is None or (key[0] in topics and key[1] in topics[key[0]].replicas) for key in keys
    )


def _of_torn_snapshot(
    finding: SourceFinding, directories: Sequence[DirectoryFiles], files: Files
) -> Iterator[StartProblem]:
    """What becomes of the newest snapshot, which a start goes by, and which is not whole.

    Other controllers send only what comes after it.
    """
    outcome = StartOutcome.BROKER_ENDS
    with suppress(CorruptFileError, UnsupportedFormatError):
        left = read_cluster_metadata(finding.path, files, SnapshotUse.AS_A_BROKER)
        if _names_all(left, directories):
            return
        outcome = StartOutcome.LOGS_STRAY
    path = newest_snapshot(finding.path, files)
    assert path is not None
    command, repair = None, "Bring it back from a backup, or from another node of the cluster."
    with suppress(CorruptFileError, UnsupportedFormatError):
        older = read_cluster_metadata(finding.path, files, SnapshotUse.LEFT_OUT)
        reaches = older.end_offset >= _offset_of(path) and older.unread is None
        if reaches and _names_all(older, directories):
            command = tool("rm", "--", path)
            repair = "Remove it: the rest of the metadata log has all that it had."
    yield StartProblem(
        outcome=outcome,
        path=path,
        problem=finding.text,
        repair=repair,
        command=command,
        reason_code=ReasonCode.METADATA_DAMAGED,
    )


def _offset_of(snapshot: str) -> int:
    return int(os.path.basename(snapshot).partition("-")[0])
