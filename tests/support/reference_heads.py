"""What stands before the bytes that the checksum of a batch covers, summed up: slow and obvious."""

from collections.abc import Iterable

WORD = 2**64
HEAD_BYTES = 21  # offset, length, leader epoch, format, and the checksum itself


def sum_of_heads(batches: Iterable[bytes]) -> int:
    """Of whole batches, in any order."""
    return sum(_number(raw[:HEAD_BYTES]) for raw in batches) % WORD


def _number(head: bytes) -> int:
    first, second, third = (
        int.from_bytes(head[at : at + 8], "little") for at in (0, 8, HEAD_BYTES - 8)
    )
    x = first ^ third * 0x9E3779B97F4A7C15 % WORD
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % WORD ^ second
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 % WORD
    return x ^ x >> 32
