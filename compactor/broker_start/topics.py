"""Judge `partition.metadata`: of which topic a log is, and what a start makes of it. Pure.

Source: Kafka, PartitionMetadataReadBuffer, LogManager.isStrayKraftReplica, LogManager.loadLog; spec
F-16.4.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from compactor.host.printable import printable
from compactor.host.shell_commands import kafka, tool
from compactor.outcome.start_problems import (
    ClusterFacts,
    DirectoryFiles,
    StartOutcome,
    StartProblem,
    decoded_id,
    partition_in,
)
from compactor.reason_codes import ReasonCode
from storage.file_names import FUTURE_DIR, is_special_dir
from storage.formats.checkpoint import TopicPartition
from storage.formats.partition_metadata import PARTITION_METADATA, encode_uuid
from storage.log.cluster_metadata import TopicImage

_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r":\s+", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_MAX_INT = 2**31 - 1
_METADATA_FORMAT = "version: 0\\ntopic_id: %s"  # for printf


class _Log(NamedTuple):
    path: str
    partition: TopicPartition
    id_: UUID | tuple[StartOutcome, str] | None  # of its topic, as topic_id_in; None: not noted

    @property
    def is_special(self) -> bool:
        return is_special_dir(os.path.basename(self.path))

    @property
    def is_future(self) -> bool:
        return self.path.endswith(FUTURE_DIR)

    @property
    def is_put_aside(self) -> bool:
        return self.is_special and not self.is_future


def problems_of_topics(
    directories: Sequence[DirectoryFiles], cluster: ClusterFacts | None
) -> Iterator[StartProblem]:
    is_kraft = cluster is not None or any(each.is_of_kraft for each in directories)
    logs = [
        _Log(
            os.path.join(directory.path, log.dir_name),
            key,
            None if log.metadata is None else topic_id_in(log.metadata),
        )
        for directory in directories
        for log in directory.logs
        if (key := partition_in(log.dir_name)) is not None
    ]
    ids: dict[str, set[UUID]] = {}  # what the partitions of a topic say its id is
    for log in logs:
        if isinstance(log.id_, UUID) and not log.is_special:
            ids.setdefault(log.partition[0], set()).add(log.id_)
    kept: dict[tuple[TopicPartition, bool], list[_Log]] = {}
    strangers: list[_Log] = []
    for log in logs:
        if not isinstance(log.id_, UUID):
            if log.id_ is not None or (is_kraft and not log.is_put_aside):
                known = _id_of(log.partition[0], cluster, ids)
                yield _without_id(log, log.id_, known, _is_missed(log, cluster))
        elif not log.is_put_aside:
            if cluster is None or _is_placed_in_it(log, cluster):
                kept.setdefault((log.partition, log.is_future), []).append(log)
            else:
                strangers.append(log)
    for same in kept.values():
        if len(same) > 1 and len({log.id_ for log in same}) == 1:
            yield from map(_twice, same)
    for stranger in strangers:
        yield _stranger(stranger, cluster, (stranger.partition, False) in kept)


@lru_cache(maxsize=1024)  # the partitions of a topic have the same bytes
def topic_id_in(data: bytes) -> UUID | tuple[StartOutcome, str]:
    """Read `partition.metadata` as a broker does: the id, or what the start comes to, and why."""
    offline, ends = StartOutcome.DIRECTORY_OFFLINE, StartOutcome.BROKER_ENDS
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return offline, "it is not UTF-8"
    lines = _LINE_END.split(text)
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return ends, "it is empty"
    version = _value(lines[0])
    if version is None or not _INTEGER.fullmatch(version) or abs(int(version)) > _MAX_INT:
        return offline, f"{lines[0][:40]!r} names no version"
    if int(version) < 0:
        return offline, f"version {version} is negative"
    if len(lines) < 2:
        return ends, "it ends behind the version"
    value = _value(lines[1])
    if value is None:
        return offline, f"{lines[1][:40]!r} names no topic id"
    id_ = decoded_id(value)
    if id_ is None:
        return ends, f"{value[:40]!r} is no topic id"
    return id_ if id_.int else (offline, "its topic id is all zeros")


def _is_missed(log: _Log, cluster: ClusterFacts | None) -> bool:
    """Whether an empty log is made in the place of one that is renamed to -stray."""
    if log.is_special:
        return False
    if cluster is None:
        return True
    topic, partition = log.partition
    image = cluster.topics.get(topic)
    return image is not None and _has_replica(image, partition, cluster)


def _has_replica(image: TopicImage, partition: int, cluster: ClusterFacts) -> bool:
    replicas = image.replicas.get(partition, ())
    return bool(replicas) if cluster.node_id is None else cluster.node_id in replicas


def _id_of(
    topic: str, cluster: ClusterFacts | None, ids: Mapping[str, set[UUID]]
) -> tuple[UUID, str] | None:
    """Give the id of a topic, and who says so."""
    if cluster is not None and topic in cluster.topics:
        return cluster.topics[topic].topic_id, "the metadata log"
    if cluster is None and len(ids.get(topic, ())) == 1:
        return next(iter(ids[topic])), "another partition of its topic"
    return None


def _is_placed_in_it(log: _Log, cluster: ClusterFacts) -> bool:
    topic, partition = log.partition
    image = cluster.topics.get(topic)
    if image is None or image.topic_id != log.id_:
        return False
    return _has_replica(image, partition, cluster)


def _without_id(
    log: _Log,
    state: tuple[StartOutcome, str] | None,
    known: tuple[UUID, str] | None,
    is_missed: bool,
) -> StartProblem:
    """is_missed: whether an empty log is made in its place if it is renamed to -stray."""
    path = os.path.join(log.path, PARTITION_METADATA)
    missing = "there is no such file"
    if state is None and not is_missed:
        return _set_aside(path, missing)
    outcome, problem = state or (StartOutcome.LOG_EMPTIED, missing)
    code = ReasonCode.DAMAGED if state else ReasonCode.NO_TOPIC_ID
    command = None
    if known is None:
        repair = (
            "Write the id of its topic into it, as two lines, version: 0 and topic_id: ID; "
            f"{kafka('topics', '--describe')} shows the id on another broker of the cluster."
        )
    else:
        id_, source = encode_uuid(known[0]), known[1]
        repair = f"Write two lines into it, version: 0 and topic_id: {id_}, as {source} says."
        command = tool("printf", _METADATA_FORMAT, id_, into=path)
    return StartProblem(
        outcome=outcome,
        path=path,
        problem=problem,
        repair=repair,
        command=command,
        reason_code=code,
    )


def _twice(log: _Log) -> StartProblem:
    return StartProblem(
        outcome=StartOutcome.BROKER_ENDS,
        path=log.path,
        problem="the same log, of the same topic id, is in another directory, too",
        repair="Find out which of the two is the right one, and move the other out of its log "
        "directory.",
        reason_code=ReasonCode.IN_TWO_LOG_DIRS,
    )


def _set_aside(path: str, problem: str) -> StartProblem:
    return StartProblem(
        outcome=StartOutcome.LOG_SET_ASIDE,
        path=path,
        problem=problem,
        repair="Nothing, if that is so.",
    )


def _stranger(log: _Log, cluster: ClusterFacts | None, has_heir: bool) -> StartProblem:
    """A log of another topic id, or of a partition that is not on this broker."""
    assert cluster is not None, "without a metadata log none is known"
    assert isinstance(log.id_, UUID)
    topic, partition = log.partition
    image = cluster.topics.get(topic)
    if image is None:
        problem = "the metadata log does not have its topic"
        return _set_aside(log.path, problem)
    if image.topic_id == log.id_:
        problem = "the metadata log does not place it on this broker"
        return _set_aside(log.path, problem)
    today = encode_uuid(image.topic_id)
    problem = f"its topic id is {encode_uuid(log.id_)}, and that of today's {topic} is {today}"
    if has_heir or log.is_future or not _has_replica(image, partition, cluster):
        return _set_aside(log.path, problem)
    path = os.path.join(log.path, PARTITION_METADATA)
    return StartProblem(
        outcome=StartOutcome.LOG_EMPTIED,
        path=log.path,
        problem=problem,
        repair="If it is of a topic that was deleted, and one of the same name was created since, "
        f"nothing has to be done. If it is today's, write its id into {printable(path)}:",
        command=tool("printf", _METADATA_FORMAT, today, into=path),
        reason_code=ReasonCode.TOPIC_ID_MISMATCH,
    )


def _value(line: str) -> str | None:
    """Give what follows the colon, as Java's String.split makes of it."""
    parts = _SEPARATOR.split(line)
    while parts and not parts[-1]:
        parts.pop()
    return parts[1] if len(parts) == 2 else None
