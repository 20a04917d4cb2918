"""`meta.properties`: which cluster, broker and disk a log directory belongs to. Pure.

Source: Kafka, MetaPropertiesEnsemble, KafkaRaftServer.initializeLogDirs; spec F-16.4.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compactor.broker_start.topics import topic_id_in
from compactor.broker_start.values import (
    ClusterFacts,
    DirectoryFiles,
    StartOutcome,
    StartProblem,
    decoded_id,
    identity_of,
    partition_in,
)
from storage.formats.meta_properties import META_PROPERTIES, MetaProperties
from storage.formats.partition_metadata import encode_uuid
from storage.log.cluster_metadata import METADATA_DIR


def is_of_broker(
    other: DirectoryFiles, own: Sequence[DirectoryFiles], cluster: ClusterFacts
) -> bool:
    """Say whether a directory that names another broker is one of this broker's all the same.

    The metadata log has it for this broker; or no broker that it has can be meant, and a log is
    there, of a topic of the cluster, that it has in a directory of this broker that is gone.
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


def names_another(
    path: str, found: MetaProperties, model: MetaProperties
) -> Iterator[StartProblem]:
    """Yield a problem where a directory names another broker than the one whose it is."""
    if (found.cluster_id, found.node_id) == (model.cluster_id, model.node_id):
        return
    yield StartProblem(
        outcome=StartOutcome.BROKER_ENDS,
        path=os.path.join(path, META_PROPERTIES),
        problem=f"it names node {found.node_id} of cluster {found.cluster_id}, and the metadata "
        f"log has this directory for node {model.node_id} of cluster {model.cluster_id}",
        repair=f"Write node.id={model.node_id} and cluster.id={model.cluster_id} into it.",
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
