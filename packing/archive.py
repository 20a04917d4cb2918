"""A tar file that is the same, byte for byte, of the same files: no time, no owner, one order."""

import gzip
import os
import tarfile
from pathlib import Path

_WHEN = 315_532_800  # 1980-01-01, before which zip files know no time


def pack(folder: Path, archive: Path, level: int) -> Path:
    """Pack what is in a folder, under names that are relative to it; the archive."""
    unfinished = archive.with_name(f"{archive.name}.part")
    with (
        unfinished.open("wb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=_WHEN) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = _WHEN
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    os.replace(unfinished, archive)
    return archive
