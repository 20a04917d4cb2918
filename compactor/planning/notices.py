"""What a plan or a run says once, whichever logs there are. Pure."""

from compactor.host.printable import counted, first_few
from compactor.planning.round_plan import RoundPlan
from storage.formats.checkpoint import REPLICATION

ALL_LOG_DIRS = (
    "Give all directories of the broker's log.dirs: if a partition is being moved to one that is "
    "not given, this is not noticed, and a deleted record could come back"
)


def notices_of(plan: RoundPlan) -> tuple[str, ...]:
    """One sentence each, without a full stop."""
    ends = (
        f"{log_dir.path} has no {REPLICATION}: the end of each log is taken for its high watermark"
        for log_dir in plan.log_dirs
        if log_dir.partitions and not log_dir.has_high_watermarks
    )
    foreign = tuple(
        f"{log_dir.path}: {counted(len(log_dir.foreign), 'file')} in partition directories "
        f"{'is' if len(log_dir.foreign) == 1 else 'are'} not Kafka's "
        f"({first_few(log_dir.foreign)}). No command changes such a file, and --output copies it"
        for log_dir in plan.log_dirs
        if log_dir.foreign
    )
    each = f"Each broker's logs are judged by themselves: {'; '.join(plan.brokers)}"
    brokers = (each,) if plan.brokers else ()
    unknown = () if plan.are_all_log_dirs_known else (ALL_LOG_DIRS,)
    settings: tuple[str, ...] = ()
    if plan.unknown_settings:
        settings = (f"Settings that are not known here: {', '.join(plan.unknown_settings)}",)
    found = (*brokers, *unknown, *ends, *settings, *foreign, *plan.absent, *plan.lasting)
    return found if plan.log_dirs else ()
