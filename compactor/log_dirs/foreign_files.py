"""Files in partition directories that are neither Kafka's nor ours: `.bak`, `.gz`, of rsync."""

from collections.abc import Iterable, Sequence

from cleaner_jobs.staging import STAGED_MARKER
from compactor.host.printable import counted, first_few
from storage.log.log_dir import PartitionListing


def foreign_files(partitions: Iterable[PartitionListing]) -> tuple[str, ...]:
    """Each with the name of its partition before it."""
    return tuple(
        f"{partition.name}/{name}"
        for partition in partitions
        for name in partition.foreign
        if STAGED_MARKER not in name
    )


def foreign_notice(log_dir: str, names: Sequence[str]) -> str:
    """One sentence on them, without a full stop. names: of one file or more."""
    return (
        f"{log_dir}: {counted(len(names), 'file')} in partition directories "
        f"{'is' if len(names) == 1 else 'are'} not Kafka's "
        f"({first_few(names)}). No command changes such a file, and --output copies it"
    )
