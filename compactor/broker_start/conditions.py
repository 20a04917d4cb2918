"""Say what a broker's start comes to, by what it reads first: names, and small files. Pure.

A broker that starts on a directory reads, in this order: `meta.properties` of every log directory,
which says to which cluster, broker and disk it belongs (`problems_of_identities`); the names of the
directories in it; the checkpoints; of each log `leader-epoch-checkpoint`, the names of its files,
`partition.metadata` (`topics`); and then it asks the metadata log whose log it is. What it does
with each that is wrong is decided in this module and in no other. Records are not looked at.

Source: Kafka, MetaPropertiesEnsemble, KafkaRaftServer.initializeLogDirs, LogManager.loadLogs,
LogLoader, CheckpointFileWithFailureHandler, PartitionMetadataReadBuffer,
LogManager.isStrayKraftReplica; spec F-16.4, each case seen with a broker 4.3.1.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress

from compactor.broker_start.topics import problems_of_topics, topic_id_in
from compactor.host.printable import printable
from compactor.host.shell_commands import named, tool
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
from compactor.reason_codes import ReasonCode, reason_code_of
from storage.errors import CorruptFileError
from storage.file_names import LOG, SWAP, file_name, offset_of
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.copy_marks import MANIFEST, NO_BROKER, UNFINISHED
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA, encode_uuid
from storage.log.cluster_metadata import METADATA_DIR
from storage.log.log_dir import is_unloadable

QUORUM_STATE = "quorum-state"  # of the metadata log: JSON
_SKIPPED_DIRS = ("remote-log-index-cache", UNFINISHED, NO_BROKER)
_NO_DIRECTORIES = {  # by file of a log: what mends it
    LEADER_EPOCH_CHECKPOINT: "Move it away: a broker makes a new file, and no record is lost.",
    PARTITION_METADATA: f"Move it away; {named('verify')} then says what to write into a file of "
    "this name.",
}
_EMPTIED = {  # by checkpoint: what an empty one comes to
    checkpoint.RECOVERY_POINT: "after an unclean shutdown a broker then checks every segment",
    checkpoint.LOG_START: "records that kafka-delete-records removed, and whose segments are still "
    "there, then come back",
    checkpoint.REPLICATION: "a broker then finds out anew how far each log is replicated",
    checkpoint.CLEANER_OFFSET: "all logs are then cleaned from their start",
}


def start_problems(
    directories: Sequence[DirectoryFiles], cluster: ClusterFacts | None
) -> list[StartProblem]:
    """Say what a start on these log directories comes to; nothing where it goes well.

    cluster: None where no metadata log can be read.
    """
    found = list(problems_of_identities(directories, cluster))
    lost = StartOutcome.DIRECTORY_OFFLINE
    offline = {os.path.dirname(problem.path) for problem in found if problem.outcome is lost}
    loaded = [directory for directory in directories if directory.path not in offline]
    readable = []  # with the logs of which the topic id is looked at
    for directory in loaded:
        found += _of_copy(directory)
        found += _of_names(directory)
        found += _of_checkpoints(directory)
        found += _of_metadata_log(directory)
        of_logs = [list(_of_log_files(directory.path, log)) for log in directory.logs]
        found += chain.from_iterable(of_logs)
        are_read = [not any(map(_ends_load, problems)) for problems in of_logs]
        readable.append(directory._replace(logs=list(compress(directory.logs, are_read))))
    found += problems_of_topics(readable, cluster)
    found += _of_two_metadata_logs(loaded)
    worst = list(StartOutcome)
    return sorted(found, key=lambda problem: (worst.index(problem.outcome), problem.path))


def is_of_broker(
    other: DirectoryFiles, own: Sequence[DirectoryFiles], cluster: ClusterFacts
) -> bool:
    """Say whether a directory that names another broker is one of this broker's all the same.

    The metadata log has it for this broker; or no broker that it has can be meant, and the
    directory has a log that the metadata log places in a directory of this broker that is gone.
    """
    found = identity_of(other)
    if not isinstance(found, MetaProperties):
        return False
    id_ = decoded_id(found.directory_id or "")
    if id_ is not None:
        return id_ in cluster.log_dir_ids
    known = [each for each in map(identity_of, own) if isinstance(each, MetaProperties)]
    if found.cluster_id in {each.cluster_id for each in known} and (
        found.node_id in cluster.node_ids
    ):
        return False
    gone = set(cluster.log_dir_ids) - {decoded_id(each.directory_id or "") for each in known}
    for log in other.logs:
        key = partition_in(log.dir_name)
        image = cluster.topics.get(key[0]) if key else None
        if key is None or image is None or log.metadata is None:
            continue
        if cluster.placed_in(key) in gone and topic_id_in(log.metadata) == image.topic_id:
            return True
    return False


def problems_of_identities(
    directories: Sequence[DirectoryFiles], cluster: ClusterFacts | None
) -> Iterator[StartProblem]:
    read = {directory.path: identity_of(directory) for directory in directories}
    known = [each for each in read.values() if isinstance(each, MetaProperties) and each.cluster_id]
    for directory in directories:
        found = read[directory.path]
        outcome, problem = StartOutcome.BROKER_ENDS, None
        if found is None and (known or directory.is_of_kraft):
            problem = "there is no such file"
        elif isinstance(found, str):
            problem = found
            if METADATA_DIR not in directory.dir_names and len(directories) > 1:
                outcome = StartOutcome.DIRECTORY_OFFLINE
        elif found is not None and (found.node_id is None or found.cluster_id is None):
            problem = "it says neither the cluster nor the broker that the directory is of"
        if problem is not None:
            repair = _identity_repair(known, cluster, read.values())
            yield StartProblem(
                outcome=outcome,
                path=os.path.join(directory.path, META_PROPERTIES),
                problem=problem,
                repair=repair,
            )
    yield from _contradictions(read)
    if cluster is not None:
        yield from _unknown_ids(directories, read, cluster)


def names_another(
    path: str, properties: MetaProperties, model: MetaProperties
) -> Iterator[StartProblem]:
    """Yield a problem where a directory names another broker than the one whose it is."""
    if (properties.cluster_id, properties.node_id) == (model.cluster_id, model.node_id):
        return
    yield StartProblem(
        outcome=StartOutcome.BROKER_ENDS,
        path=os.path.join(path, META_PROPERTIES),
        problem=f"it names node {properties.node_id} of cluster {properties.cluster_id}, and the "
        f"metadata log has this directory for node {model.node_id} of cluster {model.cluster_id}",
        repair=f"Write node.id={model.node_id} and cluster.id={model.cluster_id} into it.",
    )


def _of_copy(directory: DirectoryFiles) -> Iterator[StartProblem]:
    """A broker sees the directory of a mark alone: neither a file of its name nor the manifest."""
    marked = directory.marked
    if marked is None:
        return
    name = os.path.basename(marked.path)
    is_kept_away = name in directory.dir_names
    is_lost = not is_kept_away and name == MANIFEST
    mark = os.path.join(directory.path, NO_BROKER)
    repair = f"Start no broker here; make a whole copy for one ({named('run')} --output)."
    yield StartProblem(
        outcome=StartOutcome.BROKER_ENDS if is_kept_away else StartOutcome.COPY_CHANGED,
        path=marked.path,
        problem=marked.problem,
        repair=f"{repair} This keeps brokers away again:" if is_lost else repair,
        command=tool("mkdir", "--", mark) if is_lost else None,
        reason_code=reason_code_of(marked),
    )


def _ends_load(problem: StartProblem) -> bool:
    """Whether a log is not loaded, so that nobody asks whose it is."""
    return problem.outcome in (StartOutcome.BROKER_ENDS, StartOutcome.DIRECTORY_OFFLINE)


def _of_names(directory: DirectoryFiles) -> Iterator[StartProblem]:
    for name in directory.dir_names:
        if name not in _SKIPPED_DIRS and partition_in(name) is None:
            problem = "it is a directory, and not named like a partition"
            yield _foreign(os.path.join(directory.path, name), problem)


def _of_checkpoints(directory: DirectoryFiles) -> Iterator[StartProblem]:
    for name, data in directory.checkpoints.items():
        path = os.path.join(directory.path, name)
        if data is None:
            continue
        try:
            checkpoint.decode(data, path)
        except CorruptFileError as error:
            outcome = _outcome_of_checkpoint(name, error)
            if outcome is not None:
                yield StartProblem(
                    outcome=outcome,
                    path=path,
                    problem=error.problem,
                    repair=f"Bring it back from a backup, or empty it: {_EMPTIED[name]}.",
                    command=tool("truncate", "-s", "0", path),
                )


def _outcome_of_checkpoint(name: str, error: CorruptFileError) -> StartOutcome | None:
    """A number that is none is another error to Kafka than a malformed file."""
    if not isinstance(error, checkpoint.NotANumberError):
        return StartOutcome.DIRECTORY_OFFLINE
    return {
        checkpoint.RECOVERY_POINT: None,  # it is taken for an empty one
        checkpoint.LOG_START: StartOutcome.LOADED_WITH_LOSS,  # the same
        checkpoint.REPLICATION: StartOutcome.LOGS_NOT_SERVED,
        checkpoint.CLEANER_OFFSET: StartOutcome.CLEANER_ENDS,
    }[name]


def _of_log_files(log_dir: str, log: PartitionFiles) -> Iterator[StartProblem]:
    place = os.path.join(log_dir, log.dir_name)
    for name in _NO_DIRECTORIES.keys() & log.dir_names:
        yield StartProblem(
            outcome=StartOutcome.DIRECTORY_OFFLINE,
            path=os.path.join(place, name),
            problem="it is a directory, and a broker reads a file of this name",
            repair=_NO_DIRECTORIES[name],
            reason_code=ReasonCode.FOREIGN_FILE,
        )
    epochs = _of_epochs(os.path.join(place, LEADER_EPOCH_CHECKPOINT), log.epochs or b"")
    if epochs is not None:
        yield epochs
        return  # nothing else of it is looked at
    for name in filter(is_unloadable, log.names):
        offset = offset_of(name)
        if offset is None:
            problem = "a broker looks for an offset in this name, and there is none"
            yield _foreign(os.path.join(place, name), problem)
        elif name.endswith((LOG, LOG + SWAP)) and file_name(offset, LOG) not in log.names:
            problem = f"a broker takes it for a segment at offset {offset}, and begins an empty one"
            loss = StartOutcome.LOADED_WITH_LOSS
            yield _foreign(os.path.join(place, name), problem, loss)


def _of_epochs(path: str, data: bytes) -> StartProblem | None:
    """Say what keeps a broker from the leader epochs of a log."""
    outcome, problem = StartOutcome.BROKER_ENDS, None
    try:
        for entry in leader_epoch_checkpoint.decode(data, path):
            if min(entry) < 0:
                problem = f"epoch {entry.epoch} at offset {entry.start_offset} is below 0"
    except CorruptFileError as error:
        problem = error.problem
        if not isinstance(error, checkpoint.NotANumberError):
            outcome = StartOutcome.DIRECTORY_OFFLINE
    if problem is None:
        return None
    return StartProblem(
        outcome=outcome,
        path=path,
        problem=problem,
        repair="Remove this file alone: a broker makes a new one, and no record is lost.",
        command=tool("rm", "--", path),
    )


def _foreign(
    path: str, problem: str, outcome: StartOutcome = StartOutcome.BROKER_ENDS
) -> StartProblem:
    return StartProblem(
        outcome=outcome,
        path=path,
        problem=problem,
        repair=f"Move it out of {printable(os.path.dirname(path))}.",
        reason_code=ReasonCode.FOREIGN_FILE,
    )


# ---- the metadata log -------------------------------------------------------------------------


def _of_metadata_log(directory: DirectoryFiles) -> Iterator[StartProblem]:
    """Any error in it ends a broker; a missing small file does not."""
    log = directory.metadata_log
    if log is None:
        return
    for problem in _of_log_files(directory.path, log):
        yield problem._replace(outcome=StartOutcome.BROKER_ENDS)
    place = os.path.join(directory.path, log.dir_name)
    found = None if log.metadata is None else topic_id_in(log.metadata)
    if isinstance(found, tuple):
        path = os.path.join(place, PARTITION_METADATA)
        yield StartProblem(
            outcome=StartOutcome.BROKER_ENDS,
            path=path,
            problem=found[1],
            repair="Remove this file alone: a broker starts without it.",
            command=tool("rm", "--", path),
        )
    if directory.quorum_state is not None and not _is_json_object(directory.quorum_state):
        yield StartProblem(
            outcome=StartOutcome.BROKER_ENDS,
            path=os.path.join(place, QUORUM_STATE),
            problem="it is not JSON",
            repair="Bring it back from a backup: it says for whom this controller has voted. If it "
            "is the only controller, remove this file.",
        )


def _is_json_object(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


def _of_two_metadata_logs(directories: Sequence[DirectoryFiles]) -> Iterator[StartProblem]:
    having = [directory for directory in directories if directory.metadata_log is not None]
    for directory in having if len(having) > 1 else ():
        yield StartProblem(
            outcome=StartOutcome.BROKER_ENDS,
            path=os.path.join(directory.path, METADATA_DIR),
            problem="another log directory of this broker has a metadata log, too",
            repair="Move the one out that is not in metadata.log.dir (by default the first of "
            "log.dirs).",
        )


def _unknown_ids(
    directories: Sequence[DirectoryFiles],
    read: Mapping[str, MetaProperties | str | None],
    cluster: ClusterFacts,
) -> Iterator[StartProblem]:
    """Directories with logs that the cluster has in a directory of an id that is gone."""
    known = {path: each for path, each in read.items() if isinstance(each, MetaProperties)}
    ids = {path: decoded_id(each.directory_id or "") for path, each in known.items()}
    gone = set(cluster.log_dir_ids) - set(ids.values())
    for directory in directories if gone else ():
        if directory.path not in ids or ids[directory.path] in cluster.log_dir_ids:
            continue
        keys = [partition_in(log.dir_name) for log in directory.logs]
        if gone.intersection(cluster.placed_in(key) for key in keys if key is not None):
            yield StartProblem(
                outcome=StartOutcome.LOGS_NOT_SERVED,
                path=os.path.join(directory.path, META_PROPERTIES),
                problem="its directory.id is not the one that the metadata log has for its logs",
                repair=_identity_repair(list(known.values()), cluster, read.values()),
            )


def _contradictions(read: Mapping[str, MetaProperties | str | None]) -> Iterator[StartProblem]:
    """Directories of one broker that name another one, or that have one id."""
    known = {path: each for path, each in read.items() if isinstance(each, MetaProperties)}
    models = [each for each in known.values() if each.cluster_id and each.node_id is not None]
    ids = [each.directory_id for each in known.values() if each.directory_id]
    for path, each in known.items():
        problem = None
        if ids.count(each.directory_id or "") > 1:
            problem = f"directory.id {each.directory_id} is that of another log directory, too"
        elif models and each.cluster_id and each.node_id is not None:
            yield from names_another(path, each, models[0])
        if problem is not None:
            yield StartProblem(
                outcome=StartOutcome.BROKER_ENDS,
                path=os.path.join(path, META_PROPERTIES),
                problem=problem,
                repair="One of them is a copy: leave it out of log.dirs.",
            )


def _identity_repair(
    known: Sequence[MetaProperties], cluster: ClusterFacts | None, read: Iterable[object]
) -> str:
    """What to write into it, where another log directory or the metadata log says so."""
    if not known:
        return "Bring it back from a backup, or from another log directory of the same broker."
    model = known[0]
    taken = {each.directory_id for each in read if isinstance(each, MetaProperties)}
    registered = [encode_uuid(id_) for id_ in cluster.log_dir_ids] if cluster else []
    left = [id_ for id_ in registered if id_ not in taken]
    lines = [f"version={model.version}", f"cluster.id={model.cluster_id}"]
    lines += [f"{'node.id' if model.version else 'broker.id'}={model.node_id}"]
    lines += [f"directory.id={left[0]}"] if len(left) == 1 else []
    return f"Write these lines into it: {', '.join(lines)}."
