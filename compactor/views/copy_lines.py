"""What a run says of the copies that it has made, or would make, and what can be done with them."""

from collections.abc import Sequence

from compactor.host.printable import counted, size_text
from compactor.host.shell_commands import compactor
from compactor.round_report import CopyReport


def copy_lines(copies: Sequence[CopyReport]) -> list[str]:
    """Those that begin with blanks are commands, each for a shell as it stands."""
    return [line for copy in copies for line in _lines(copy)]


def _lines(copy: CopyReport) -> list[str]:
    size = f"{size_text(copy.bytes)} in {counted(copy.files, 'file')}"
    if copy.manifest is None:
        room = size_text(copy.needed_bytes)
        return [
            f"Would be copied: {size} from {copy.source} to {copy.path}. Up to {room} of room are "
            "needed there for the copy, none of it where both share their bytes (reflinks)."
        ]
    if copy.linked_bytes:
        size += f" ({size_text(copy.linked_bytes)} as hard links)"
    lines = [
        f"Copy: {size} from {copy.source}, which is as it was, to {copy.path}. Its manifest is "
        f"{copy.manifest}."
    ]
    if copy.why_not is not None:
        lines.append(f"No broker may be started on {copy.path}: {copy.why_not}.")
    options = ("--against", copy.source, "--manifest")
    return [*lines, f"  to prove it: {compactor('verify', copy.path, options=options)}"]
