"""Data of every compressibility: noise, runs, what came before once more, words."""

from random import Random

# at the limits of what a codec treats alike: short blocks, tables, blocks, windows
SIZES = (0, 1, 4, 5, 11, 12, 13, 14, 20, 60, 300, 5000, 16000, 40000, 65535, 65536)
WORDS = b"compaction", b'{"id":', b"\0\0\0\1"


def random_data(chance: Random, sizes: tuple[int, ...] = SIZES) -> bytes:
    size = chance.choice(sizes) if chance.random() < 0.5 else chance.randrange(max(sizes) + 1)
    data = bytearray()
    while len(data) < size:
        way = chance.random()
        if way < 0.3:
            data += chance.randbytes(chance.randrange(1, 60))
        elif way < 0.5:
            data += chance.randbytes(1) * chance.randrange(1, chance.choice((5, 30, 300, 2000)))
        elif way < 0.8 and data:
            back = chance.randrange(1, len(data) + 1)
            length = chance.randrange(1, chance.choice((8, 30, 300)))
            data += (bytes(data[-back:]) * (length // back + 1))[:length]
        else:
            data += chance.choice(WORDS) * chance.randrange(1, 4)
    return bytes(data[:size])


def damaged(data: bytes, chance: Random) -> bytes:
    """With one or two other bytes, or cut short as well."""
    other = bytearray(data)
    for _ in range(chance.choice((1, 1, 2))):
        value = chance.choice((0, 15, 240, 255, chance.randrange(256)))
        other[chance.randrange(len(other))] = value
    return bytes(other[: chance.randrange(len(other) + 1)] if chance.random() < 0.3 else other)
