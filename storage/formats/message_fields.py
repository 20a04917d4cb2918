"""Fields of messages as Kafka's own serializers write them into records of its internal topics.

Integers are big endian, and a UUID is 16 bytes. A flexible version begins strings and arrays with
their length plus one as uvarint, where 0 is null, and ends with tagged fields: count uvarint |
each: tag uvarint, size uvarint, bytes. Source: Kafka, ByteBufferAccessor.
"""

from collections.abc import Callable
from struct import Struct
from typing import TypeVar
from uuid import UUID

from storage.formats.record import MalformedRecordError
from storage.formats.varint import CutVarintError, MalformedVarintError

INT8, INT16, UINT16 = Struct(">b"), Struct(">h"), Struct(">H")
INT32, INT64 = Struct(">i"), Struct(">q")
_VARINT_BITS = 32
_T = TypeVar("_T")


class MessageFields:
    """The fields of one message, taken from the front."""

    def __init__(self, data: bytes, name: str) -> None:
        """name: of the message, for errors."""
        self._data, self._at, self._name = data, 0, name

    def uvarint(self) -> int:
        data, at = self._data, self._at
        if at < len(data) and data[at] < 0x80:  # nearly every one
            self._at = at + 1
            return data[at]
        number = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFF_FFFF
        raise MalformedVarintError("an unsigned varint goes on after 5 bytes")

    def number(self, layout: Struct) -> int:
        found: int = layout.unpack(self.take(layout.size))[0]
        return found

    def uuid(self) -> UUID:
        return UUID(bytes=self.take(16))

    def text(self) -> str:
        found = self.text_or_null()
        if found is None:
            raise MalformedRecordError(f"{self._name}: null where a string is needed")
        return found

    def text_or_null(self) -> str | None:
        length = self.uvarint()
        if not length:
            return None
        try:
            return self.take(length - 1).decode()
        except UnicodeDecodeError as error:
            raise MalformedRecordError(f"{self._name}: a string is not UTF-8") from error

    def array(self, item: Callable[[], _T]) -> tuple[_T, ...] | None:
        length = self.uvarint()
        if not length:
            return None
        return tuple(item() for _ in range(self.plausible(length - 1)))

    def plausible(self, count: int) -> int:
        """The number of items of an array: no item has less than a byte."""
        if count > len(self._data) - self._at:
            raise MalformedRecordError(f"{self._name}: an array of {count} is cut short")
        return count

    def numbers(self) -> tuple[int, ...]:
        return self.array(lambda: self.number(INT32)) or ()

    def tagged(self) -> dict[int, "MessageFields"]:
        """All tagged fields, each to be read on its own."""
        count = self.uvarint()
        if not count:  # as a rule
            return {}
        return {
            self.uvarint(): MessageFields(self.take(self.uvarint()), self._name)
            for _ in range(count)
        }

    def require_end(self) -> None:
        if self._at != len(self._data):
            left = len(self._data) - self._at
            raise MalformedRecordError(f"{self._name}: {left} bytes are left")

    def take(self, count: int) -> bytes:
        at = self._at
        found = self._data[at : at + count]
        if len(found) < count:
            raise CutVarintError(f"{count} bytes expected, {len(found)} left")
        self._at = at + count
        return found
