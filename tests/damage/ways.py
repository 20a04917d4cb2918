"""Ways to damage a file: every byte, every length, garbage."""

import random
from collections.abc import Iterator
from functools import partial

from tests.damage.damaged_logs import Case, all_sound, log_files, sound_log

BIT_PATTERNS = (0x01, 0x80)
OTHER_PATTERNS = (0x01, 0x04, 0x80)
SMALL_FILES = (".index", ".timeindex", ".txnindex", ".snapshot", "checkpoint", ".metadata")


def patched(position: int, other: bytes, data: bytes) -> bytes:
    return data[:position] + other + data[position + len(other) :]


def flipped(position: int, pattern: int, data: bytes) -> bytes:
    return patched(position, bytes([data[position] ^ pattern]), data)


def cut(length: int, data: bytes) -> bytes:
    return data[:length]


def _being(noise: bytes, _: bytes) -> bytes:
    return noise


def _and(noise: bytes, data: bytes) -> bytes:
    return data + noise


def flips(patterns: tuple[int, ...] = BIT_PATTERNS) -> Iterator[Case]:
    """Every byte of every `.log`, one at a time."""
    for source in all_sound():
        for name, data in log_files(source, ".log"):
            for position in range(len(data)):
                for pattern in patterns:
                    what = f"byte {position} ^ {pattern:02x}"
                    yield Case(source, name, what, partial(flipped, position, pattern))


def cuts() -> Iterator[Case]:
    """Every `.log` at every length."""
    for source in all_sound():
        for name, data in log_files(source, ".log"):
            for length in range(len(data)):
                yield Case(source, name, f"cut to {length}", partial(cut, length))


def other_files() -> Iterator[Case]:
    """Every byte and every length of the files beside the logs; of equal files one is enough."""
    seen: set[tuple[str, bytes]] = set()
    for source in all_sound():
        for path in sorted(sound_log(source).before.iterdir()):
            data = path.read_bytes()
            kind = path.name.partition(".")[2] or path.name
            if not path.name.endswith(SMALL_FILES) or (kind, data) in seen:
                continue
            seen.add((kind, data))
            for position in range(len(data)):
                for pattern in OTHER_PATTERNS:
                    change = partial(flipped, position, pattern)
                    yield Case(source, path.name, f"byte {position} ^ {pattern:02x}", change)
            for length in range(len(data)):
                yield Case(source, path.name, f"cut to {length}", partial(cut, length))


def garbage(seed: int, per_file: int) -> Iterator[Case]:
    """Random bytes in the place of a file, behind it, and over a stretch of it."""
    chance = random.Random(seed)
    for source in all_sound():
        for path in sorted(sound_log(source).before.iterdir()):
            size = path.stat().st_size
            for _ in range(per_file):
                noise = chance.randbytes(chance.randrange(1, 200))
                yield Case(source, path.name, f"is {noise.hex()}", partial(_being, noise))
                yield Case(source, path.name, f"and {noise.hex()}", partial(_and, noise))
                if size:
                    at = chance.randrange(size)
                    what = f"byte {at} on: {noise.hex()}"
                    yield Case(source, path.name, what, partial(patched, at, noise))
