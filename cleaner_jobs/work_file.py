"""Small files of a run's own that begin with their checksum, which stands nowhere else."""

from struct import Struct

import xxhash

from cleaner_jobs.problems import WorkFileError
from storage.files.filesystem import naming, read_bytes

_CHECKSUM = Struct("<Q")  # xxh3_64 of all behind it


def write_checked(path: str, data: bytes) -> None:
    """Write what `read_checked` reads. Raise OSError."""
    with naming(path), open(path, "wb") as out:
        out.write(_CHECKSUM.pack(xxhash.xxh3_64_intdigest(data)))
        out.write(data)


def read_checked(path: str) -> bytes:
    """Return what was written. Raise WorkFileError where it is anything else, or OSError."""
    found = read_bytes(path)
    checksum, data = found[: _CHECKSUM.size], found[_CHECKSUM.size :]
    if checksum != _CHECKSUM.pack(xxhash.xxh3_64_intdigest(data)):
        raise WorkFileError(path, 0, "not what was written")
    return data
