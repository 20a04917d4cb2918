"""What a run says of the originals that it has kept: how much, where, and what becomes of them."""

from compactor.host.printable import counted, size_text
from compactor.host.shell_commands import compactor
from compactor.round_report import OriginalsReport


def originals_lines(kept: OriginalsReport) -> list[str]:
    """None where nothing was kept. The last two are commands, each for a shell as it stands."""
    if not kept.files:
        return []
    files = f"{counted(kept.files, 'file')} {'is' if kept.files == 1 else 'are'}"
    size = size_text(kept.linked_bytes + kept.copied_bytes)
    return [
        f"Originals: {size} in {files} kept in {kept.path}, {_how(kept)}.",
        f"  to discard them: {compactor('undo', kept.path, options=('--discard',))}",
        f"  to undo the run: {compactor('undo', kept.path)}",
    ]


def _how(kept: OriginalsReport) -> str:
    links = "no disk space is freed until they are discarded"
    if not kept.copied_bytes:
        return f"as hard links: {links}"
    if not kept.linked_bytes:
        return "as copies, which take that room there until they are discarded"
    return (
        f"{size_text(kept.linked_bytes)} as hard links: {links}; "
        f"{size_text(kept.copied_bytes)} as copies"
    )
