"""What stands within its batch and in Kafka's form: against reading it and writing it again."""

from random import Random
from typing import Any

import pytest

from cleaner_jobs.kernels.record_form import (
    NO_SUCH_RECORD,
    is_canonical,
    record_end,
    record_time_delta,
)
from storage.kernels.kernel import kernel
from tests.cleaner_jobs.kernels.framed import padded
from tests.support.random_batches import random_batch
from tests.support.reference_batch import ReferenceRecord, encode_record

BEYOND_ASCII = 0x80
SHORTEST_BODY = 6  # attributes, two deltas, two lengths and a count


@kernel
def kernels_answer(payload: Any, end: int) -> tuple[int, int, int, bool]:
    """Of the record at 0: where its body begins and ends, its time delta, whether it is as it is
    to be. The functions under test are made to be parts of a kernel."""
    body, stop = record_end(payload, 0, end)
    if body == NO_SUCH_RECORD:
        return -1, -1, 0, False
    delta, rest = record_time_delta(payload, body, stop)
    if rest == NO_SUCH_RECORD:
        return body, stop, 0, False
    return body, stop, delta, is_canonical(payload, rest, stop)


class Form:
    """Reads what stands behind the timestamp delta, and writes it as Kafka does (F-5)."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._again = data, 0, b""

    def is_kafkas(self) -> bool:
        try:
            self._varint()
            self._take(self._varint())
            self._take(self._varint())
            count = self._varint()
            for _ in range(count):
                key = self._take(self._varint())
                if key is None or max(key, default=0) >= BEYOND_ASCII:
                    return False
                self._take(self._varint())
        except (IndexError, ValueError):
            return False
        return count >= 0 and self._again == self._data

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 35, 7):
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                number &= 0xFFFFFFFF
                self._again += shortest(number)
                return (number >> 1) ^ -(number & 1)
        raise ValueError("a varint too long")

    def _take(self, length: int) -> bytes | None:
        if length == -1:
            return None
        if not 0 <= length <= len(self._data) - self._at:
            raise ValueError("a length that is none")
        taken = self._data[self._at : self._at + length]
        self._at += length
        self._again += taken
        return taken


def shortest(number: int) -> bytes:
    """Of a number without its sign."""
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def random_body(chance: Random) -> bytes:
    """A record without its length, as it was written or with a byte or two other than that."""
    made = random_batch(chance, 1000).records
    record = chance.choice(made)
    raw = encode_record(record, 1000, record.timestamp)
    body = bytearray(raw[len(raw) - _length_of(raw) :])
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(2, min(len(body), 24))
        change = chance.randrange(4)
        if change == 0:
            body[at] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        elif change == 1:
            body[at : at + 1] = bytes([body[at] | 0x80, 0])  # a varint longer than it need be
        elif change == 2:
            del body[at]
        else:
            body.insert(at, chance.randrange(256))
    return bytes(body)


def _length_of(raw: bytes) -> int:
    """What the varint at the start of a record says."""
    number = 0
    for at, byte in enumerate(raw):
        number |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return number >> 1
    raise AssertionError(raw)


def test_the_form_is_that_of_reading_and_writing_again() -> None:
    """The time delta is one byte of zero here: the records are those of their own base."""
    chance, forms = Random(7), {True: 0, False: 0}
    for _ in range(4000):
        body = random_body(chance)
        if len(body) < SHORTEST_BODY:
            continue
        raw = shortest(2 * len(body)) + body
        expected = Form(body[2:]).is_kafkas()
        forms[expected] += 1
        begins, ends, delta, found = kernels_answer(padded(raw), len(raw))
        assert (begins, ends, delta) == (len(raw) - len(body), len(raw), 0), raw
        assert found is expected, raw
    assert min(forms.values()) > 1000


@pytest.mark.parametrize("delta", [0, -1, 1, 63, 64, -64, -65, 2**34, -(2**41), 2**62])
def test_the_time_delta_of_a_record(delta: int) -> None:
    raw = encode_record(ReferenceRecord(0, delta, b"k", b"v"), 0, 0)
    assert kernels_answer(padded(raw), len(raw))[2:] == (delta, True)


def test_a_record_that_is_cut_off_anywhere_is_none() -> None:
    raw = encode_record(ReferenceRecord(0, 5, b"key", b"v" * 80, ((b"h", None),)), 0, 0)
    for end in range(len(raw)):
        assert kernels_answer(padded(raw), end) == (-1, -1, 0, False)


@pytest.mark.parametrize("length", [-1, 0, 1, 5])
def test_a_length_without_room_for_the_fields_is_none(length: int) -> None:
    raw = shortest(2 * length if length >= 0 else 1) + bytes(40)
    assert kernels_answer(padded(raw), len(raw))[0] == NO_SUCH_RECORD


def test_a_time_delta_up_to_the_end_is_none() -> None:
    body = b"\0" + b"\x80" * 8 + b"\1"
    raw = shortest(2 * len(body)) + body
    assert kernels_answer(padded(raw), len(raw)) == (1, len(raw), 0, False)


@pytest.mark.parametrize(("last", "expected"), [(0x01, True), (0x0F, True), (0x11, False)])
def test_bits_beyond_the_32_of_a_varint_are_not_kafkas(last: int, expected: bool) -> None:
    """Kafka reads the offset delta without them, and writes it without them (F-5.2)."""
    body = b"\0\0" + bytes([0x80, 0x80, 0x80, 0x80, last]) + b"\1\1\0"
    raw = shortest(2 * len(body)) + body
    assert Form(body[2:]).is_kafkas() is expected
    assert kernels_answer(padded(raw), len(raw))[3] is expected
