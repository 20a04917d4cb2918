"""What the map's entries take in the files of parts, given back as soon as they are merged.

The rewrite stage reads record states there and nothing else. A task of the resolve stage that
Spark has given up may still be reading: it finds that these are not the bytes that were written,
and nobody asks for what it makes of them.
"""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

from cleaner_jobs.messages import ENTRY_BYTES, Part
from storage.files.disk_hints import punch_hole


def release_entries(parts: Iterable[Part]) -> None:
    """Release the entries of parts, which nobody merges any more. Nothing is raised."""
    of_file = defaultdict[str, list[Part]](list)
    for part in parts:
        of_file[part.file].append(part)
    for path, own in of_file.items():
        with suppress(OSError), open(path, "r+b", buffering=0) as file:
            for part in own:
                punch_hole(file.fileno(), part.block_at, part.entries * ENTRY_BYTES)
