"""Logs whose whole directory is gone, though a checkpoint and the metadata log place them here.

A broker that starts makes an empty log in its place. Only a metadata log that has the topic, and
its replica in this very log directory, shows that: a copy of some topics looks the same otherwise.
"""

from collections.abc import Iterator, Sequence

from compactor.cluster_settings import directory_id_of
from compactor.config import Config
from compactor.reason_codes import ReasonCode
from compactor.round_report import LogReport, LogStatus
from compactor.survey import LogDirSurvey
from storage.file_names import is_special_dir, parse_partition_dir
from storage.files.files import Files
from storage.formats.checkpoint import REPLICATION


def missing_directories(
    config: Config, surveys: Sequence[LogDirSurvey], files: Files
) -> Iterator[LogReport]:
    """Yield a report for each of them that filters do not leave out."""
    cluster = config.cluster
    if cluster is None or cluster.metadata is None or cluster.node_id is None:
        return
    here = {(p.topic, p.partition) for survey in surveys for p in survey.listing.partitions}
    here |= {key for survey in surveys for key in _explained(survey)}
    for survey in surveys:
        directory_id = directory_id_of(survey.path, files)
        if directory_id is None:
            continue
        for (topic, partition), end_offset in (survey.high_watermarks or {}).items():
            had_records = end_offset > survey.log_start_offsets.get((topic, partition), 0)
            if not had_records or (topic, partition) in here or not config.is_wanted(topic):
                continue
            if cluster.is_placed(topic, partition, directory_id):
                yield LogReport(
                    log_dir=survey.path,
                    topic=topic,
                    partition=partition,
                    status=LogStatus.SET_ASIDE,
                    reason=f"its directory is gone: {REPLICATION} says that it had records up to "
                    f"offset {end_offset}, and the metadata log places it here; a broker that "
                    "starts here begins it again as an empty log",
                    reason_code=ReasonCode.LOG_MISSING,
                )


def _explained(survey: LogDirSurvey) -> Iterator[tuple[str, int]]:
    """Logs that are moved here, deleted, stray, or not to be listed."""
    yield from survey.listing.moving_here
    for name, _ in survey.listing.ignored:
        key = parse_partition_dir(name.rpartition(".")[0] if is_special_dir(name) else name)
        if key is not None:
            yield key
