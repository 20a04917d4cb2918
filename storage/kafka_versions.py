"""The versions of Kafka whose answer can be given, and all that differs between them: one table.

Nothing else compares versions: code that needs a difference reads it from its `KafkaVersion`, by
the name of the difference. Rules: versions V-1 to V-8.
Source: Kafka, Cleaner, MetadataVersion, TopicConfig of each release, and its libraries.
"""

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple


class EmptyLastBatch(Enum):
    """The end before which the last batch without records stays as a header (V-2)."""

    AT_END_OF_ROUND = auto()
    AT_HIGH_WATERMARK = auto()


class CodecBuilds(NamedTuple):
    """The packages of Python that compress to the bytes of a Kafka's own libraries (V-5)."""

    zstd: str  # version of libzstd
    cramjam: str  # release, for lz4 and snappy


class KafkaVersion(NamedTuple):
    """A minor release of Kafka, by the patch release that is followed."""

    name: str  # the minor release
    release: str  # that is followed, and compared with
    metadata_version: int  # the highest that a broker of it supports (V-1)
    empty_last_batch: EmptyLastBatch  # V-2
    limits_decompression: bool  # V-4: max.decompressed.message.bytes is obeyed
    prepares_to_close: bool  # V-7: the active segment of a log, and leaves the others
    reads_whole_txn_version: bool  # V-8: of an entry of a .txnindex; else its first byte
    codecs: CodecBuilds  # V-5


_ZSTD_6, _ZSTD_7 = CodecBuilds("1.5.6", "2.14.0"), CodecBuilds("1.5.7", "2.14.0")

# ascending
VERSIONS = (
    KafkaVersion(
        name="4.1",
        release="4.1.2",
        metadata_version=27,
        empty_last_batch=EmptyLastBatch.AT_END_OF_ROUND,
        limits_decompression=False,
        prepares_to_close=False,
        reads_whole_txn_version=False,
        codecs=_ZSTD_6,
    ),
    KafkaVersion(
        name="4.2",
        release="4.2.2",
        metadata_version=29,
        empty_last_batch=EmptyLastBatch.AT_END_OF_ROUND,
        limits_decompression=True,
        prepares_to_close=False,
        reads_whole_txn_version=False,
        codecs=_ZSTD_6,
    ),
    KafkaVersion(
        name="4.3",
        release="4.3.1",
        metadata_version=30,
        empty_last_batch=EmptyLastBatch.AT_END_OF_ROUND,
        limits_decompression=False,
        prepares_to_close=False,
        reads_whole_txn_version=False,
        codecs=_ZSTD_6,
    ),
    KafkaVersion(
        name="4.4",
        release="4.4.0",
        metadata_version=33,
        empty_last_batch=EmptyLastBatch.AT_HIGH_WATERMARK,
        limits_decompression=True,
        prepares_to_close=True,
        reads_whole_txn_version=True,
        codecs=_ZSTD_7,
    ),
)
RECORD_LIMIT = "max.decompressed.message.bytes"
NO_RECORD_LIMIT = 2**31 - 9  # its default
OLDEST, NEWEST = VERSIONS[0], VERSIONS[-1]
BY_NAME: Mapping[str, KafkaVersion] = MappingProxyType({each.name: each for each in VERSIONS})
NAMES = ", ".join(BY_NAME)


class KafkaChoice(NamedTuple):
    """The Kafka whose answer is given, and why."""

    version: KafkaVersion
    why: str  # for people, one line without a full stop
    warning: str | None = None  # where that answer may not be the broker's own


class KafkaUse(NamedTuple):
    """A choice, and the log directories whose logs are cleaned by it."""

    choice: KafkaChoice
    log_dirs: tuple[str, ...]

    @property
    def text(self) -> str:
        """Say it in one line, for people."""
        return f"As Kafka {self.choice.version.release}: {self.choice.why}"


def nobody_knows(why: str) -> KafkaChoice:
    """Choose where nothing says which version the broker has; why: for people."""
    return KafkaChoice(
        NEWEST, f"{why}, so the version of the broker is unknown, and the newest counts"
    )


NOBODY_SAYS = nobody_knows("no metadata log was read")


def of_broker(metadata_version: int, where: str) -> KafkaChoice:
    """Choose by the highest metadata.version that a broker's software supports (V-1).

    where: whose registration says so, for people.
    """
    says = f"{where} supports metadata.version {metadata_version}"
    known = [each for each in VERSIONS if each.metadata_version <= metadata_version]
    if not known:
        text = f"{says}, which is older than {OLDEST.name}; the oldest that is known counts"
        return KafkaChoice(OLDEST, text)
    chosen = known[-1]
    if chosen is NEWEST and metadata_version > chosen.metadata_version:
        text = f"{says}, which is newer than {NEWEST.name}; the newest that is known counts"
        return KafkaChoice(chosen, text, text)
    return KafkaChoice(chosen, says)


def has_setting(version: KafkaVersion, name: str) -> bool:
    """Say whether a setting of topics, which some version has, means anything in this one (V-4)."""
    return name != RECORD_LIMIT or version.limits_decompression


def record_limit(version: KafkaVersion, configured_bytes: int) -> int | None:
    """Give how large a record may be by max.decompressed.message.bytes; None: no limit (V-4)."""
    if not version.limits_decompression or configured_bytes >= NO_RECORD_LIMIT:
        return None
    return configured_bytes


def last_kept_offset(version: KafkaVersion, round_end: int, high_watermark: int) -> int:
    """Give where a batch ends that stays although it is empty, exclusive (V-2)."""
    if version.empty_last_batch is EmptyLastBatch.AT_HIGH_WATERMARK:
        return high_watermark
    return round_end
