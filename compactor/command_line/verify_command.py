"""`verify`, from the words of the command line to lines, a table and a result."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from compactor import api, views
from compactor.command_line.command import (
    Command,
    Format,
    Output,
    Result,
    operand,
    output_part,
    part,
    result_of,
)
from compactor.command_line.console import show, show_lines, shown_progress
from compactor.command_line.shared_options import (
    LOG_DIR_MISSING,
    OF_TASKS,
    PARTITIONS,
    PARTITIONS_HELP,
    directories_or_logs,
    log_dirs_and_partitions,
    require_tasks,
)
from compactor.errors import UsageError
from compactor.outcome.exit_codes import DONE, ExitCode, ExitStatus
from compactor.reason_codes import ReasonCode
from compactor.settings.options import LOGS, option


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCommand(Command):
    """Check every checksum, offset, index and snapshot, or compare with a copy from before.

    With --against, every record is compared: each log is whole, or what was removed is shown by the
    log start, delete horizons, reports or settings, or it is unexplained (exit code 4). Reads only.
    With less than 512 MiB to compare, --engine auto starts no process.

    [dim]compactor verify /data/kafka-1 /data/kafka-2[/]

    [dim]compactor verify /data/kafka orders-7[/]

    [dim]compactor verify /data/kafka --against /backup/kafka-before --run-report last.json[/]
    """

    NAME: ClassVar[str] = "verify"

    words: tuple[str, ...] = operand(
        PARTITIONS,
        PARTITIONS_HELP,
        are_several=True,
        missing=LOG_DIR_MISSING,
        offered=directories_or_logs,
    )
    before: str | None = option(
        None,
        "BEFORE",
        "Copy of LOG_DIR from before a compaction (cp -al): prove that no live record was lost",
        LOGS,
        name="--against",
    )
    as_of: str | None = option(
        None,
        "TIME",
        "With --against: clock of the cleaning, epoch milliseconds or ISO 8601,"
        " to check delete horizons",
        LOGS,
    )
    run_reports: tuple[str, ...] = option(
        (),
        "FILE",
        "With --against: report of a run, undo or log command that came in between. Repeatable",
        LOGS,
        name="--run-report",
        is_repeated=True,
    )
    rules: api.Rules = part(api.Rules, "topic_configs")
    options: api.TaskOptions = part(api.TaskOptions, *OF_TASKS)
    manifest: bool = option(
        False,
        "",
        "Also check every file of a copy against the compactor-copy.json that "
        "run --output has left",
    )
    output: Output = output_part("report", "format", "quiet", "debug")

    def execute(self) -> Result:
        """Check everything, compare it with a copy from before, and show the findings."""
        log_dirs, partitions = log_dirs_and_partitions(self.words)
        _require_against(self, log_dirs, partitions)
        with shown_progress() as progress:
            compared = _compared(self, log_dirs[0], partitions, progress)
            listed = log_dirs if self.manifest else ()  # first: it may not be there
            of_copies = [api.verify_manifest(log_dir, progress) for log_dir in listed]
            found = api.verify(log_dirs, partitions, progress)
            found.findings += chain.from_iterable(of_copies)
        if self.output.format is Format.TABLE:
            notices = [f"{notice[:1].upper()}{notice[1:]}." for notice in found.notices]
            show_lines([*map(str, found.findings), views.verification_line(found), *notices])
            if compared is not None:
                show(lambda width: views.comparison_view(compared, width))
            show_lines(views.after_verify(log_dirs[0], found, compared))
        document = views.verification_document(found, compared)
        ending = ExitStatus(ExitCode.PARTIAL, ReasonCode.FINDINGS) if document.findings else DONE
        return result_of(self.NAME, document, ending)


def _require_against(
    wanted: VerifyCommand, log_dirs: Sequence[str], partitions: Sequence[str]
) -> None:
    if wanted.before is None and wanted.as_of is not None:
        raise UsageError(f"--as-of {wanted.as_of}: only with --against, for its delete horizons")
    if wanted.before is None and wanted.run_reports:
        raise UsageError(f"--run-report {wanted.run_reports[0]}: goes with --against")
    if wanted.before is None and wanted.rules.topic_configs is not None:
        raise UsageError(f"--topic-configs {wanted.rules.topic_configs}: goes with --against")
    require_tasks(wanted.options, wanted.before is not None, "--against")
    if wanted.as_of is not None and wanted.run_reports:
        raise UsageError("--as-of: not with --run-report, which has the clock of the run")
    if wanted.before is not None and len(log_dirs) > 1:
        raise UsageError(
            f"--against {wanted.before}: is a copy of one log directory, and "
            f"{len(log_dirs)} were given ({', '.join(log_dirs)}); compare each by "
            "itself"
        )
    if wanted.before is not None and len(partitions) > 1:
        raise UsageError(
            f"--against {wanted.before}: compares one TOPIC-PARTITION, or all of them, and "
            f"{len(partitions)} were given ({', '.join(partitions)})"
        )


def _compared(
    wanted: VerifyCommand, log_dir: str, partitions: Sequence[str], progress: "api.OnProgress"
) -> "api.Comparison | None":
    if wanted.before is None:
        return None
    clock = api.known_of_cleanings(wanted.run_reports, wanted.rules.topic_configs)
    if wanted.as_of is not None:
        clock = clock._replace(as_of_ms=api.as_of_ms(wanted.as_of), is_exact=True)
    only = next(iter(partitions), None)
    return api.verify_against(log_dir, wanted.before, only, clock, progress, wanted.options)
