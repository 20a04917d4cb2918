"""The plan of one log that a round cleans."""

from cleaner_jobs.plan import LogPlan
from compactor.planning.candidate import Prepared
from compactor.planning.segment_groups import SegmentLimits, group_segments
from compactor.planning.selection import legacy_horizon_ms
from storage.kafka_versions import last_kept_offset, record_limit


def log_plan_of(log_id: int, prepared: Prepared) -> LogPlan:
    """What a round does with a log that it cleans. log_id: its place in the order."""
    judgement = prepared.judgement
    partition, config = judgement.partition, judgement.config
    end = judgement.cleanable.first_uncleanable_offset
    assert judgement.high_watermark is not None, "of a log that was prepared"
    limits = SegmentLimits(config.segment_bytes, config.segment_index_bytes)
    return LogPlan(
        log_id=log_id,
        log_dir=judgement.log_dir,
        topic=partition.topic,
        partition=partition.partition,
        path=partition.path,
        first_dirty_offset=judgement.first_dirty.offset,
        first_uncleanable_offset=end,
        groups=group_segments(prepared.to_rewrite, limits, end),
        delete_retention_ms=config.delete_retention_ms,
        index_interval_bytes=config.index_interval_bytes,
        segment_index_bytes=config.segment_index_bytes,
        active_producers=prepared.producers,
        segment_bytes=config.segment_bytes,
        log_start_offset=judgement.offsets.log_start,
        txn_index_base_offsets=tuple(
            segment.base_offset
            for segment in partition.segments
            if segment.txn_index_bytes and segment.index_bytes is not None
        ),
        rebuilt_txn_indexes=tuple(
            rebuilt for rebuilt in prepared.rebuilt_txn_indexes if rebuilt[1]
        ),
        files=partition.files,
        notes=prepared.notes,
        legacy_horizon_ms=legacy_horizon_ms(
            partition.segments, judgement.first_dirty.offset, config.delete_retention_ms
        ),
        kafka=judgement.kafka,
        max_record_bytes=record_limit(judgement.kafka, config.max_decompressed_message_bytes),
        kept_end_offset=last_kept_offset(judgement.kafka, end, judgement.high_watermark),
    )
