"""A deflate stream, taken apart by a kernel, with the strictness of zlib.

block: 1 bit, whether it is the last | 2 bits, its kind | stored bytes; or lengths of the codes of
literals, lengths and distances, and then symbols up to the one that ends the block.
A code is looked up by as many bits as most codes have; longer ones in a table after that.

What is not taken may be sound all the same: zlib decides, and says what is wrong. Source: RFC 1951;
zlib 1.2.13, inflate and inflate_table.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from storage.kernels.kernel import inlined, kernel
from storage.kernels.memory_access import (
    OVERSHOOT,
    copy_bytes,
    copy_match,
    load_byte,
    load_le_uint64,
)

ByteArray = npt.NDArray[np.uint8]
UInt32Array = npt.NDArray[np.uint32]

NOT_TAKEN = -1
FOLLOWING_BYTES = 8  # that stand after a stream, at least: so it can be read a word at a time
_MAX_BITS = 15  # of a code
_END_OF_BLOCK = 256
_LITERAL_SYMBOLS, _DISTANCE_SYMBOLS, _LENGTH_SYMBOLS = 288, 32, 19
_MAX_LITERAL_CODES, _MAX_DISTANCE_CODES = 286, 30  # that a block may describe
_LONGEST_MATCH = 258
_LITERALS_AT_ONCE = 3
MARGIN = (
    _LITERALS_AT_ONCE + _LONGEST_MATCH + OVERSHOOT
)  # of out: a step of the loop has as much room
_BITS_OF_STEP = np.int64(48)  # of a length, its extra bits, a distance, its extra bits
_STORED, _FIXED, _DYNAMIC = 0, 1, 2  # kinds of blocks

# An entry of a table: how many bits it takes with its extra ones, how many without (from bit 8 on),
# its value (from bit 16 on), and what it is. Of a table within the table, those bits are how many
# it takes to get there, and by how many it is looked up; its value is where that begins.
_CODE_BITS_AT, _VALUE_AT = 8, 16
_LITERAL, _SPECIAL, _TABLE, _END = 1 << 31, 1 << 15, 1 << 14, 1 << 13
_INVALID = _SPECIAL

_LITERAL_BITS, _DISTANCE_BITS, _LENGTH_BITS = 10, 8, 7  # by which codes are looked up
# slots of the tables: no code needs more (zlib's enough.c for 288 and 32 symbols)
_LITERAL_SLOTS, _DISTANCE_SLOTS, _LENGTH_SLOTS = 2048, 512, 128
_DISTANCES_AT = _LITERAL_SLOTS
_LENGTHS_AT = _DISTANCES_AT + _DISTANCE_SLOTS
_CODE_LENGTHS_AT = _LENGTHS_AT + _LENGTH_SLOTS
_SORTED_AT = _CODE_LENGTHS_AT + _LITERAL_SYMBOLS + _DISTANCE_SYMBOLS
_COUNTS_AT = _SORTED_AT + _LITERAL_SYMBOLS
_OFFSETS_AT = _COUNTS_AT + _MAX_BITS + 1
TABLE_SLOTS = _OFFSETS_AT + _MAX_BITS + 2

_ORDER = np.array(
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64
)  # in which the lengths of the codes of lengths come


def _literal_entries() -> UInt32Array:
    entries = [_LITERAL | byte << _VALUE_AT for byte in range(256)] + [_SPECIAL | _END]
    base = 3
    for symbol in range(28):
        extra = max(0, symbol // 4 - 1)
        entries.append(base << _VALUE_AT | extra)
        base += 1 << extra
    entries.append(_LONGEST_MATCH << _VALUE_AT)
    return np.array(entries + [_INVALID] * 2, np.uint32)


def _distance_entries() -> UInt32Array:
    entries, base = [], 1
    for symbol in range(_MAX_DISTANCE_CODES):
        extra = max(0, symbol // 2 - 1)
        entries.append(base << _VALUE_AT | extra)
        base += 1 << extra
    return np.array(entries + [_INVALID] * 2, np.uint32)


_LITERAL_ENTRIES, _DISTANCE_ENTRIES = _literal_entries(), _distance_entries()
_LENGTH_ENTRIES = np.arange(_LENGTH_SYMBOLS, dtype=np.uint32) << np.uint32(_VALUE_AT)
_FIXED_LENGTHS = np.array(
    [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8 + [5] * _DISTANCE_SYMBOLS, np.uint32
)


@kernel
def inflate(
    source: ByteArray, span: tuple[int, int], out: ByteArray, room: tuple[int, int], tables: Any
) -> tuple[int, int]:
    """Put what the stream that begins at span[0] holds into out[room[0]:room[1]].

    span: the stream ends FOLLOWING_BYTES before span[1], or earlier. tables: TABLE_SLOTS of uint32;
    what is in them does not matter. Returns the positions after the stream and after what came
    out; NOT_TAKEN for both: see above, and where there is little room. Bytes of out after that
    position, in bounds, may be written, too.
    """
    ip: Any = np.int64(span[0])
    op: Any = np.int64(room[0])
    end: Any = np.int64(span[1])
    most: Any = min(np.int64(room[1]), np.int64(out.shape[0]))
    bits = np.uint64(0)
    held = np.int64(0)
    literals: Any = np.int64(0)
    distances: Any = np.int64(0)
    first: Any = np.int64(room[0])
    is_last = False
    while not is_last:
        bits, held, ip = _refill(source, bits, held, ip, end)
        if held < _BITS_OF_STEP:
            return NOT_TAKEN, NOT_TAKEN
        is_last = bits & np.uint64(1) != 0
        kind = np.int64((bits >> np.uint64(1)) & np.uint64(3))
        bits >>= np.uint64(3)
        held -= 3
        if kind == _STORED:
            ip -= held >> 3  # what was read ahead, but for the rest of a byte
            bits = np.uint64(0)
            held = np.int64(0)
            ip, op = _copy_stored(source, ip, end, out, op, most)
        else:
            is_sound = True
            if kind == _FIXED:
                for i in range(_FIXED_LENGTHS.shape[0]):
                    tables[_CODE_LENGTHS_AT + i] = _FIXED_LENGTHS[i]
                literals = np.int64(_LITERAL_SYMBOLS)
                distances = np.int64(_DISTANCE_SYMBOLS)
            elif kind == _DYNAMIC:
                bits, held, ip, literals, distances = _read_lengths(
                    source, bits, held, ip, end, tables
                )
                is_sound = literals > 0
            else:
                return NOT_TAKEN, NOT_TAKEN
            if not is_sound or not _make_tables(tables, literals, distances):
                return NOT_TAKEN, NOT_TAKEN
            places = (first, op, most)
            bits, held, ip, op = _expand((source, end), (bits, held, ip), out, places, tables)
        if op < 0:
            return NOT_TAKEN, NOT_TAKEN
    ip -= held >> 3
    if ip > end - FOLLOWING_BYTES:
        return NOT_TAKEN, NOT_TAKEN
    return int(ip), int(op)


@inlined
def _refill(source: ByteArray, bits: Any, held: Any, ip: Any, end: Any) -> tuple[Any, Any, Any]:
    """At least 56 bits, unless that is more than there are before the end."""
    if end - ip >= 8:
        bits |= load_le_uint64(source, ip) << np.uint64(held)
        ip += (63 - held) >> 3
        held |= 56
    else:
        while held < 56 and ip < end:
            bits |= load_byte(source, ip) << np.uint64(held)
            ip += 1
            held += 8
    return bits, held, ip


@inlined
def _copy_stored(
    source: ByteArray, ip: Any, end: Any, out: ByteArray, op: Any, most: Any
) -> tuple[Any, Any]:
    """The positions after a stored block of which the header is read; the second -1: damaged."""
    if end - ip < 4 + FOLLOWING_BYTES:
        return ip, np.int64(NOT_TAKEN)
    word = np.int64(load_le_uint64(source, ip) & np.uint64(0xFFFFFFFF))
    size = word & 0xFFFF
    ip += 4
    if size ^ word >> 16 != 0xFFFF or size > end - FOLLOWING_BYTES - ip or size > most - op:
        return ip, np.int64(NOT_TAKEN)
    copy_bytes(out, op, source, ip, size)
    return ip + size, op + size


@kernel
def _read_lengths(
    source: ByteArray, bits: Any, held: Any, ip: Any, end: Any, tables: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Read the lengths of a block's codes: the place after them, and how many of both kinds.

    None of the first: it is damaged.
    """
    literals = np.int64(bits & np.uint64(31)) + 257
    distances = np.int64((bits >> np.uint64(5)) & np.uint64(31)) + 1
    described = np.int64((bits >> np.uint64(10)) & np.uint64(15)) + 4
    bits >>= np.uint64(14)
    held -= 14
    failed = np.int64(0)
    if literals > _MAX_LITERAL_CODES or distances > _MAX_DISTANCE_CODES:
        return bits, held, ip, failed, failed
    for i in range(_LENGTH_SYMBOLS):
        length = np.uint64(0)
        if i < described:
            bits, held, ip = _refill(source, bits, held, ip, end)
            if held < _BITS_OF_STEP:
                return bits, held, ip, failed, failed
            length = bits & np.uint64(7)
            bits >>= np.uint64(3)
            held -= 3
        tables[_CODE_LENGTHS_AT + _ORDER[i]] = length
    if not _make_table(
        tables, (0, _LENGTH_SYMBOLS), _LENGTH_ENTRIES, (_LENGTHS_AT, _LENGTH_BITS), False
    ):
        return bits, held, ip, failed, failed
    done = np.int64(0)
    previous = np.uint32(0)
    while done < literals + distances:
        bits, held, ip = _refill(source, bits, held, ip, end)
        if held < _BITS_OF_STEP:
            return bits, held, ip, failed, failed
        entry = np.uint64(tables[_LENGTHS_AT + np.int64(bits & np.uint64((1 << _LENGTH_BITS) - 1))])
        taken = entry & np.uint64(0xFF)
        bits >>= taken
        held -= np.int64(taken)
        symbol = np.int64(entry >> np.uint64(_VALUE_AT))
        if symbol < 16:
            previous = np.uint32(symbol)
            tables[_CODE_LENGTHS_AT + done] = previous
            done += 1
            continue
        extra = np.int64(2 if symbol == 16 else (3 if symbol == 17 else 7))
        repeats = np.int64(11 if symbol == 18 else 3)
        repeats += np.int64(bits & np.uint64((1 << extra) - 1))
        bits >>= np.uint64(extra)
        held -= extra
        if (symbol == 16 and done == 0) or done + repeats > literals + distances:
            return bits, held, ip, failed, failed
        if symbol != 16:
            previous = np.uint32(0)
        for _ in range(repeats):
            tables[_CODE_LENGTHS_AT + done] = previous
            done += 1
    return bits, held, ip, literals, distances


@kernel
def _make_tables(tables: Any, literals: int, distances: int) -> bool:
    """Make the tables of a block from the lengths of its codes; return whether zlib takes these."""
    if tables[_CODE_LENGTHS_AT + _END_OF_BLOCK] == 0:
        return False
    made = _make_table(tables, (0, literals), _LITERAL_ENTRIES, (0, _LITERAL_BITS), False)
    of_distances = (_DISTANCES_AT, _DISTANCE_BITS)
    return bool(
        made and _make_table(tables, (literals, distances), _DISTANCE_ENTRIES, of_distances, True)
    )


@kernel
def _make_table(
    tables: Any, codes: tuple[int, int], entries: UInt32Array, table: tuple[int, int], sparse: bool
) -> bool:
    """Make the table of a code, by the lengths of its symbols; whether it is a whole code.

    codes: where the lengths stand among all, and how many. entries: of each symbol. table: where it
    begins, and by how many bits it is looked up. sparse: it may have one code of a bit, or none.
    """
    first, symbols = codes
    begin, root = table
    length: Any = np.int64(0)
    for i in range(_MAX_BITS + 1):
        tables[_COUNTS_AT + i] = 0
    for i in range(symbols):
        tables[_COUNTS_AT + np.int64(tables[_CODE_LENGTHS_AT + first + i])] += np.uint32(1)
    left = np.int64(1)
    offset = np.int64(0)
    for i in range(1, _MAX_BITS + 1):
        left = 2 * left - np.int64(tables[_COUNTS_AT + i])
        if left < 0:
            return False
        tables[_OFFSETS_AT + i] = offset
        offset += np.int64(tables[_COUNTS_AT + i])
    if left > 0:
        if not sparse or offset > 1 or (offset == 1 and tables[_COUNTS_AT + 1] == 0):
            return False
        for i in range(1 << root):
            tables[begin + i] = np.uint32(_INVALID)
    for i in range(symbols):
        length = np.int64(tables[_CODE_LENGTHS_AT + first + i])
        if length != 0:
            place = _OFFSETS_AT + length
            tables[_SORTED_AT + np.int64(tables[place])] = np.uint32(i)
            tables[place] += np.uint32(1)
    code = np.int64(0)  # its first bit is the lowest
    within: Any = np.int64(-1)  # the bits that all codes of a table within the table begin with
    inner: Any = np.int64(begin)  # that table
    following: Any = inner + (1 << root)
    inner_bits: Any = np.int64(0)
    for i in range(offset):
        symbol = np.int64(tables[_SORTED_AT + i])
        length = np.int64(tables[_CODE_LENGTHS_AT + first + symbol])
        if length <= root:
            entry = entries[symbol] + np.uint32(length * (1 + (1 << _CODE_BITS_AT)))
            at = code
            while at < 1 << root:
                tables[begin + at] = entry
                at += 1 << length
        else:
            if code & ((1 << root) - 1) != within:
                within = code & ((1 << root) - 1)
                inner = following
                inner_bits = length - root
                room = (np.int64(1) << inner_bits) - np.int64(tables[_COUNTS_AT + length])
                while room > 0:
                    inner_bits += 1
                    room = 2 * room - np.int64(tables[_COUNTS_AT + root + inner_bits])
                following = inner + (np.int64(1) << inner_bits)
                pointer = (inner - begin) << _VALUE_AT | _SPECIAL | _TABLE
                tables[begin + within] = np.uint32(pointer | inner_bits << _CODE_BITS_AT | root)
            entry = entries[symbol] + np.uint32((length - root) * (1 + (1 << _CODE_BITS_AT)))
            at = code >> root
            while at < 1 << inner_bits:
                tables[inner + at] = entry
                at += 1 << (length - root)
        tables[_COUNTS_AT + length] -= np.uint32(1)
        bit = np.int64(1) << (length - 1)
        while code & bit != 0:
            bit >>= 1
        code = (code & (bit - 1)) + bit if bit != 0 else np.int64(0)
    return True


@inlined
def _value(bits: Any, held: Any, entry: Any) -> tuple[Any, Any, Any]:
    """A length or a distance, with its extra bits, and the place after them."""
    taken = entry & np.uint64(0xFF)
    code_bits = entry >> np.uint64(_CODE_BITS_AT) & np.uint64(0xF)
    value = np.int64(entry >> np.uint64(_VALUE_AT))
    value += np.int64((bits & ((np.uint64(1) << taken) - np.uint64(1))) >> code_bits)
    return bits >> taken, held - np.int64(taken), value


@inlined
def _looked_up_within(tables: Any, begin: Any, bits: Any, held: Any, entry: Any) -> Any:
    """The place after what leads to a table within the table, and what is found there."""
    taken = entry & np.uint64(0xFF)
    inner_bits = entry >> np.uint64(_CODE_BITS_AT) & np.uint64(0xF)
    bits >>= taken
    at = entry >> np.uint64(_VALUE_AT)
    at += bits & ((np.uint64(1) << inner_bits) - np.uint64(1))
    return bits, held - np.int64(taken), np.uint64(tables[np.uint64(begin) + at])


@kernel
def _expand(
    stream: tuple[ByteArray, int],
    place: tuple[Any, int, int],
    out: ByteArray,
    places: tuple[int, int, int],
    tables: Any,
) -> tuple[Any, Any, Any, Any]:
    """Put the symbols of a block into out: the place after them, and the position in out.

    places: where in out the stream begins, this block, and where the room ends. -1 for the position
    in out: they are damaged, or there is little room.
    """
    source, end = stream
    bits: Any = place[0]
    held: Any = np.int64(place[1])
    ip: Any = np.int64(place[2])
    first, op, most = places
    most -= MARGIN
    failed = np.int64(NOT_TAKEN)
    flag = np.uint64(_LITERAL)
    mask = np.uint64((1 << _LITERAL_BITS) - 1)
    while True:
        bits, held, ip = _refill(source, bits, held, ip, end)
        if held < _BITS_OF_STEP or op > most:
            return bits, held, ip, failed
        entry = np.uint64(tables[bits & mask])
        for _ in range(_LITERALS_AT_ONCE):
            if entry & flag == 0:
                break
            out[op] = np.uint8(entry >> np.uint64(_VALUE_AT) & np.uint64(0xFF))
            op += 1
            taken = entry & np.uint64(0xFF)
            bits >>= taken
            held -= np.int64(taken)
            entry = np.uint64(tables[bits & mask])
        if entry & flag != 0:
            continue
        if held < _BITS_OF_STEP:
            bits, held, ip = _refill(source, bits, held, ip, end)
            if held < _BITS_OF_STEP:
                return bits, held, ip, failed
        if entry & np.uint64(_SPECIAL) != 0:
            if entry & np.uint64(_TABLE) != 0:
                bits, held, entry = _looked_up_within(tables, np.int64(0), bits, held, entry)
                if entry & flag != 0:
                    out[op] = np.uint8(entry >> np.uint64(_VALUE_AT) & np.uint64(0xFF))
                    op += 1
                    bits >>= entry & np.uint64(0xFF)
                    held -= np.int64(entry & np.uint64(0xFF))
                    continue
            if entry & np.uint64(_END) != 0:
                bits >>= entry & np.uint64(0xFF)
                held -= np.int64(entry & np.uint64(0xFF))
                return bits, held, ip, op
            if entry & np.uint64(_SPECIAL) != 0:
                return bits, held, ip, failed
        bits, held, length = _value(bits, held, entry)
        entry = np.uint64(
            tables[np.uint64(_DISTANCES_AT) + (bits & np.uint64((1 << _DISTANCE_BITS) - 1))]
        )
        if entry & np.uint64(_TABLE) != 0 and entry & np.uint64(_SPECIAL) != 0:
            bits, held, entry = _looked_up_within(
                tables, np.int64(_DISTANCES_AT), bits, held, entry
            )
        if entry & np.uint64(_SPECIAL) != 0:
            return bits, held, ip, failed
        bits, held, offset = _value(bits, held, entry)
        if offset > op - first:
            return bits, held, ip, failed
        copy_match(out, op, offset, length)
        op += length
