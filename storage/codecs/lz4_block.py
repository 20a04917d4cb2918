"""One raw lz4 block, in kernels: compressed to the bytes of the C library, and taken apart.

sequence: token, lengths in its upper and lower four bits | more literal length | literals |
offset uint16 LE | more match length. A length of 15 goes on in bytes that are added to it, up to
one that is not 255. The last sequence ends after its literals.

The library is linked into cramjam, which takes one block a call; here a kernel takes many. What
`decompress_block` does not take may be sound all the same: the library decides, and says what is
wrong. Source: lz4 1.9.4 and 1.10.0, LZ4_compress_default for less than 64 KiB + 11,
LZ4_decompress_safe, doc/lz4_Block_format.md.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    OVERSHOOT,
    copy_bytes,
    copy_match,
    copy_some,
    load_byte,
    load_le_uint64,
    trailing_zeros,
)

ByteArray = npt.NDArray[np.uint8]
UInt16Array = npt.NDArray[np.uint16]

MAX_BLOCK_BYTES = 65536  # of content: what Kafka's writer puts in one
TABLE_SLOTS = 8192
NOT_TAKEN = -1
_HASH_FACTOR, _HASH_SHIFT = 2654435761, 19
_WORD = 0xFFFFFFFF
_MIN_MATCH = 4
_LAST_LITERALS = 5  # no match reaches into them
_MATCH_LIMIT = 12  # no match begins so near to the end
_MAX_NIBBLE = 15
_SKIP_TRIGGER = 6  # after so many bits of failures the step grows by one
_AFTER_LITERALS = 3 + _LAST_LITERALS  # at least, where they are not the last


@inlined
def max_compressed_bytes(size: Any) -> Any:
    """How long a block of so much content gets at most."""
    return size + size // 255 + 16


@kernel
def decompress_block(
    source: ByteArray, start: int, end: int, out: ByteArray, at: int, limit: int
) -> int:
    """Put what the block source[start:end] holds into out[at:limit]; the position after it.

    Bytes of out after that position, in bounds, may be written, too. NOT_TAKEN: damaged, of a
    form that is unusual near its end, or with too little room.
    """
    ip, op = _expand_most(source, (start, end), out, (at, limit))
    first: Any = np.int64(at)
    while ip < end:
        token = np.int64(source[ip])
        ip += 1
        length = token >> 4
        if length == _MAX_NIBBLE:
            more = np.int64(255)
            while more == 255:
                if ip >= end:
                    return NOT_TAKEN
                more = np.int64(source[ip])
                ip += 1
                length += more
        literals_end = ip + length
        if literals_end > end - _AFTER_LITERALS:  # then it has to be the last sequence
            if literals_end != end or length > limit - op:
                return NOT_TAKEN
            copy_bytes(out, op, source, ip, length)
            return int(op + length)
        if length > limit - _MATCH_LIMIT - op:
            return NOT_TAKEN
        copy_bytes(out, op, source, ip, length)
        ip = literals_end
        op += length
        offset = np.int64(source[ip]) | np.int64(source[ip + 1]) << 8
        ip += 2
        length = (token & _MAX_NIBBLE) + _MIN_MATCH
        if length == _MAX_NIBBLE + _MIN_MATCH:
            more = np.int64(255)
            while more == 255:
                if ip >= end - _LAST_LITERALS:
                    return NOT_TAKEN
                more = np.int64(source[ip])
                ip += 1
                length += more
        if offset == 0 or offset > op - first or length > limit - _LAST_LITERALS - op:
            return NOT_TAKEN
        for _ in range(length):
            out[op] = out[op - offset]
            op += 1
    return NOT_TAKEN


@inlined
def _expand_most(
    source: ByteArray, span: tuple[Any, Any], out: ByteArray, room: tuple[Any, Any]
) -> tuple[Any, Any]:
    """Go over sequences as long as nothing is near an end; where the first one that is left begins.

    In source, and in out. Of a sequence that is malformed nothing counts as done. span, room: the
    block, and where it may be put. A copy touches up to OVERSHOOT bytes after its end.
    """
    ip: Any = np.int64(span[0])
    op: Any = np.int64(room[0])
    first = op
    source_limit = min(span[1] - _AFTER_LITERALS, source.shape[0] - OVERSHOOT)
    out_limit = min(room[1] - _MATCH_LIMIT, out.shape[0] - OVERSHOOT)
    done, filled = ip, op
    while ip < source_limit:
        token = np.int64(load_byte(source, ip))
        ip, length = _whole_length(source, ip + 1, token >> 4, source_limit)
        if length > source_limit - ip or length > out_limit - op:
            break
        copy_some(source, ip, out, op, length)
        ip += length
        op += length
        offset = np.int64(load_le_uint64(source, ip) & np.uint64(0xFFFF))
        ip, length = _whole_length(source, ip + 2, token & _MAX_NIBBLE, source_limit)
        length += _MIN_MATCH
        if offset == 0 or offset > op - first or length > out_limit - op:
            break
        copy_match(out, op, offset, length)
        op += length
        done, filled = ip, op
    return done, filled


@inlined
def _whole_length(source: ByteArray, ip: Any, length: Any, limit: Any) -> tuple[Any, Any]:
    """The position after a length of which the token's share is given, and the length.

    It is far too large where it does not end below the limit.
    """
    if length == _MAX_NIBBLE:
        more = np.int64(255)
        while more == 255:
            if ip >= limit:
                return ip, np.int64(1) << 60
            more = np.int64(load_byte(source, ip))
            ip += 1
            length += more
    return ip, length


@kernel
def compress_block(
    source: ByteArray, start: int, end: int, slots: UInt16Array, out: ByteArray, at: int
) -> int:
    """Put the block of source[start:end] into out at `at`; the position after it.

    At most MAX_BLOCK_BYTES of content; out has room for max_compressed_bytes of it. slots:
    TABLE_SLOTS of them; what is in them does not matter.
    """
    size: Any = np.int64(end) - start
    anchor: Any = np.int64(start)
    op: Any = np.int64(at)
    if size <= _MATCH_LIMIT:
        return int(_put_last_literals(source, anchor, end, out, op))
    slots[:TABLE_SLOTS] = 0
    match_start_limit = end - _MATCH_LIMIT + 1
    match_end_limit = end - _LAST_LITERALS
    slots[_slot(source, np.int64(start))] = 0
    ip: Any = np.int64(start) + 1
    while True:
        ip, match = _find_match(source, start, slots, ip, match_start_limit)
        if match < 0:
            break
        while ip > anchor and match > start and source[ip - 1] == source[match - 1]:
            ip -= 1
            match -= 1
        token_at = op
        op = _put_literals(source, anchor, ip, out, op)
        while True:
            out[op] = np.uint8((ip - match) & 0xFF)
            out[op + 1] = np.uint8((ip - match) >> 8)
            op += 2
            length = _match_length(source, ip + _MIN_MATCH, match + _MIN_MATCH, match_end_limit)
            ip += length + _MIN_MATCH
            op = _put_match_length(out, token_at, op, length)
            anchor = ip
            if ip >= match_start_limit:
                return int(_put_last_literals(source, anchor, end, out, op))
            slots[_slot(source, ip - 2)] = np.uint16(ip - 2 - start)
            slot = _slot(source, ip)
            match = start + np.int64(slots[slot])
            slots[slot] = np.uint16(ip - start)
            if not _same_four(source, match, ip):
                break
            token_at = op
            out[op] = 0
            op += 1
        ip += 1
    return int(_put_last_literals(source, anchor, end, out, op))


@inlined
def _slot(source: ByteArray, position: Any) -> Any:
    word = load_le_uint64(source, position) & np.uint64(_WORD)
    return np.int64((word * np.uint64(_HASH_FACTOR) & np.uint64(_WORD)) >> np.uint64(_HASH_SHIFT))


@inlined
def _same_four(source: ByteArray, first: Any, second: Any) -> bool:
    differ = load_le_uint64(source, first) ^ load_le_uint64(source, second)
    return bool(differ & np.uint64(_WORD) == 0)


@inlined
def _find_match(
    source: ByteArray, start: Any, slots: UInt16Array, position: Any, limit: Any
) -> tuple[Any, Any]:
    """Return the next position whose bytes stand earlier, too, and where; -1 if nowhere."""
    step = np.int64(1)
    failures = np.int64(1) << _SKIP_TRIGGER
    following = position
    slot = _slot(source, position)
    while True:
        position = following
        following += step
        step = failures >> _SKIP_TRIGGER
        failures += 1
        if following > limit:
            return position, np.int64(-1)
        match = start + np.int64(slots[slot])
        slots[slot] = np.uint16(position - start)
        if _same_four(source, match, position):
            return position, match
        slot = _slot(source, following)


@inlined
def _match_length(source: ByteArray, position: Any, match: Any, limit: Any) -> Any:
    """How many bytes from both positions on are equal, below limit."""
    first = position
    while position + 8 <= limit:
        differ = load_le_uint64(source, position) ^ load_le_uint64(source, match)
        if differ != np.uint64(0):
            return position - first + np.int64(trailing_zeros(differ) >> np.uint64(3))
        position += 8
        match += 8
    while position < limit and source[position] == source[match]:
        position += 1
        match += 1
    return position - first


@inlined
def _put_length(out: ByteArray, op: Any, rest: Any) -> Any:
    """What is left of a length beyond the token's share of it."""
    while rest >= 255:
        out[op] = 255
        op += 1
        rest -= 255
    out[op] = np.uint8(rest)
    return op + 1


@inlined
def _put_literals(source: ByteArray, start: Any, end: Any, out: ByteArray, op: Any) -> Any:
    """The token and the literals of a sequence; the match's share of the token is left at 0."""
    length = end - start
    if length >= _MAX_NIBBLE:
        out[op] = _MAX_NIBBLE << 4
        op = _put_length(out, op + 1, length - _MAX_NIBBLE)
    else:
        out[op] = np.uint8(length << 4)
        op += 1
    has_room = end + OVERSHOOT <= source.shape[0]
    if has_room and op + length + OVERSHOOT <= out.shape[0]:
        copy_some(source, start, out, op, length)
    else:
        copy_bytes(out, op, source, start, length)
    return op + length


@inlined
def _put_match_length(out: ByteArray, token_at: Any, op: Any, length: Any) -> Any:
    if length >= _MAX_NIBBLE:
        out[token_at] += np.uint8(_MAX_NIBBLE)
        return _put_length(out, op, length - _MAX_NIBBLE)
    out[token_at] += np.uint8(length)
    return op


@inlined
def _put_last_literals(source: ByteArray, start: Any, end: Any, out: ByteArray, op: Any) -> Any:
    return _put_literals(source, start, end, out, op)
