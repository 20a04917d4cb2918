"""The versions of Kafka that the oracle runs on, and what its Java says otherwise for each.

`ORACLE_KAFKA` names one of them (`make conformance KAFKA=4.4` sets it). The sources speak the words
of Kafka 4.3; a version replaces some of them, and the files in `java/kafka-VERSION` take the place
of those of the same name.
"""

import os
from dataclasses import dataclass

from tests.oracle.jars import OracleUnavailableError

Words = tuple[tuple[str, str], ...]  # what the sources say, what this version says


@dataclass(frozen=True, slots=True)
class Version:
    name: str  # the last patch release of a minor version stands for it
    release: str
    words: Words = ()
    engine: bool = True  # whether it runs scripts of the engine


_OLD_RECORDS: Words = (
    ("org.apache.kafka.common.record.internal.", "org.apache.kafka.common.record."),
)
_FIELDS_OF_4_1: Words = (  # they became Java records
    ("last.producerEpoch()", "last.producerEpoch"),
    ("last.lastDataOffset()", "last.lastDataOffset"),
    # no transaction version in appendAsLeader
    (
        'VerificationGuard.SENTINEL, (short) op.path("transaction_version").asInt(1));',
        "VerificationGuard.SENTINEL);",
    ),
)
_MOVED_IN_4_4: Words = (
    ("kafka.log.LogManager", "org.apache.kafka.storage.internals.log.LogManager"),
    ("common.utils.ByteBufferOutputStream", "common.utils.internals.ByteBufferOutputStream"),
    ("common.utils.BufferSupplier", "common.utils.internals.BufferSupplier"),
    ("common.utils.CloseableIterator", "common.utils.internals.CloseableIterator"),
    ("common.utils.Crc32C", "common.utils.internals.Crc32C"),
    ("storage.internals.log.AbortedTxn", "common.message.AbortedTxn"),
    (".closeHandlers()", ".closeQuietly()"),
    # without it the active indexes stay preallocated
    ("closing.flush(true);", "closing.prepareActiveSegmentForClose(); closing.flush(true);"),
)
VERSIONS = {
    version.name: version
    for version in (
        Version("4.1", "4.1.2", _OLD_RECORDS + _FIELDS_OF_4_1, engine=False),
        Version("4.2", "4.2.2", _OLD_RECORDS),
        Version("4.3", "4.3.1"),
        Version("4.4", "4.4.0", _MOVED_IN_4_4),
    )
}
DEFAULT = "4.3"
VARIABLE = "ORACLE_KAFKA"


def chosen() -> Version:
    """The version that the environment asks for."""
    name = os.environ.get(VARIABLE) or DEFAULT
    if name not in VERSIONS:
        raise OracleUnavailableError(f"{VARIABLE}={name}: the oracle runs on {', '.join(VERSIONS)}")
    return VERSIONS[name]
