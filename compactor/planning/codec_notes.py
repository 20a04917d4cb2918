"""What a plan says of codecs that are of another build than that of the chosen Kafka (V-5)."""

import os
from collections.abc import Iterable
from itertools import islice

from storage.codecs.compression import build_notes, differing_builds, installed_builds
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import LOG, Segment, file_name
from storage.kafka_versions import KafkaVersion
from storage.log.log_dir import PartitionListing
from storage.log.segment_reader import read_batch_headers

OTHER_BYTES_NOTE = "the same records in other compressed bytes: {}"
_LOOKED_AT = 8  # batches at the beginning of each segment


def codec_notes(
    partition: PartitionListing, segments: Iterable[Segment], kafka: KafkaVersion
) -> tuple[str, ...]:
    """Say which codecs of a log would not give its Kafka's bytes, by its first batches.

    Nothing is read where all codecs do. What cannot be read says nothing here; the scan finds it.
    """
    if not differing_builds(kafka, installed_builds()):
        return ()
    codecs = 0
    for segment in segments:
        path = os.path.join(partition.path, file_name(segment.base_offset, LOG))
        try:
            headers = read_batch_headers(path, files=partition.access)
            for _, header in islice(headers, _LOOKED_AT):
                codecs |= 1 << header.codec
        except (CorruptFileError, UnsupportedFormatError, OSError):
            continue
    notes = build_notes(kafka, codecs, installed_builds())
    return tuple([OTHER_BYTES_NOTE.format(note) for note in notes])
