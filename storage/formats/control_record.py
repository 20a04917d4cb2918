"""Control records: key and value of a transaction marker, and the types of the other kinds.

key: version int16 = 0 | type int16; a later version is read as this one
value of ABORT and COMMIT: version int16 = 0 | coordinator epoch int32; what follows is ignored

Layout: spec F-6. Source: Kafka, ControlRecordType, EndTransactionMarker.
"""

from enum import IntEnum
from struct import Struct

from storage.formats.record import MalformedRecordError

KEY = Struct(">hh")
MARKER_VALUE = Struct(">hi")
SNAPSHOT_HEADER_VALUE = Struct(">hq")  # version, time of the last record that is in the snapshot


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1

    @classmethod
    def _missing_(cls, value: object) -> "ControlType":  # noqa: ARG003
        return cls.UNKNOWN

    @property
    def is_marker(self) -> bool:
        return self in (ControlType.ABORT, ControlType.COMMIT)


def decode_type(key: bytes | None) -> ControlType:
    """Return the type that the key of a control record names; UNKNOWN if it is none of them.

    Raise MalformedRecordError where the key is cut short or its version negative.
    """
    if key is None or len(key) < KEY.size:
        problem = f"control record key has {len(key or b'')} of {KEY.size} bytes"
        raise MalformedRecordError(problem)
    version, number = KEY.unpack_from(key)
    if version < 0:
        raise MalformedRecordError(f"control record key of version {version}")
    return ControlType(number)


def decode_coordinator_epoch(value: bytes | None) -> int:
    """Return what the value of a marker says. Raise MalformedRecordError."""
    if value is None or len(value) < MARKER_VALUE.size:
        problem = f"marker value has {len(value or b'')} of {MARKER_VALUE.size} bytes"
        raise MalformedRecordError(problem)
    version, coordinator_epoch = MARKER_VALUE.unpack_from(value)
    if version < 0:
        raise MalformedRecordError(f"marker value of version {version}")
    return int(coordinator_epoch)


def decode_snapshot_time(value: bytes | None) -> int:
    """Return the time of the last record in a snapshot, of its header. MalformedRecordError."""
    if value is None or len(value) < SNAPSHOT_HEADER_VALUE.size:
        expected = SNAPSHOT_HEADER_VALUE.size
        raise MalformedRecordError(f"snapshot header has {len(value or b'')} of {expected} bytes")
    return int(SNAPSHOT_HEADER_VALUE.unpack_from(value)[1])
