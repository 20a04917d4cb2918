"""`verify`, from the words of the command line to lines, a table and a result."""

from itertools import chain

from compactor import api
from compactor.command_line.console import show, show_lines, shown_progress
from compactor.command_line.requests import Format, Result, VerifyArguments
from compactor.exit_codes import ExitCode, UsageError
from compactor.reason_codes import ReasonCode
from compactor.views.against_table import comparison_view
from compactor.views.next_steps import after_verify
from compactor.views.report_json import JsonObject, summary
from compactor.views.verification_report import (
    comparison_document,
    finding_document,
    partition_documents,
    verification_document,
    verification_line,
)


def result_of(wanted: VerifyArguments) -> Result:
    """Check everything, compare it with a copy from before, and show what was found."""
    _require_against(wanted)
    with shown_progress() as progress:
        compared = _compared(wanted, progress)
        listed = wanted.log_dirs if wanted.manifest else ()  # first: it may not be there
        of_copies = [api.verify_manifest(log_dir, progress) for log_dir in listed]
        found = api.verify(wanted.log_dirs, wanted.partitions, progress)
        found.findings += chain.from_iterable(of_copies)
    findings = found.findings + (compared.findings if compared else [])
    code, reason_code = ExitCode.OK, ReasonCode.DONE
    if findings:
        code, reason_code = ExitCode.PARTIAL, ReasonCode.FINDINGS
    begin = summary("verify", code, reason_code=reason_code) | verification_document(found)
    document: JsonObject = {}
    if compared is not None:
        begin |= {"against": comparison_document(compared)}
        document = {"partitions": partition_documents(compared)}
    if wanted.format is Format.TABLE:
        notices = [f"{notice[:1].upper()}{notice[1:]}." for notice in found.notices]
        show_lines([*map(str, found.findings), verification_line(found), *notices])
        if compared is not None:
            show(lambda width: comparison_view(compared, width))
        show_lines(after_verify(wanted.log_dirs[0], found, compared))
    documents = [finding_document(finding) for finding in findings]
    return Result(begin | {"findings": documents} | document, begin)


def _require_against(wanted: VerifyArguments) -> None:
    if wanted.against is None and wanted.as_of is not None:
        raise UsageError(f"--as-of {wanted.as_of}: only with --against, for its delete horizons")
    if wanted.against is None and wanted.run_reports:
        raise UsageError(f"--run-report {wanted.run_reports[0]}: goes with --against")
    if wanted.against is None and wanted.topic_configs is not None:
        raise UsageError(f"--topic-configs {wanted.topic_configs}: goes with --against")
    if wanted.as_of is not None and wanted.run_reports:
        raise UsageError("--as-of: not with --run-report, which has the clock of the run")
    if wanted.against is not None and len(wanted.log_dirs) > 1:
        raise UsageError(
            f"--against {wanted.against}: is a copy of one log directory, and "
            f"{len(wanted.log_dirs)} were given ({', '.join(wanted.log_dirs)}); compare each by "
            "itself"
        )
    if wanted.against is not None and len(wanted.partitions) > 1:
        raise UsageError(
            f"--against {wanted.against}: compares one TOPIC-PARTITION, or all of them, and "
            f"{len(wanted.partitions)} were given ({', '.join(wanted.partitions)})"
        )


def _compared(wanted: VerifyArguments, progress: api.OnProgress) -> api.Comparison | None:
    if wanted.against is None:
        return None
    clock = api.known_of_cleanings(wanted.run_reports, wanted.topic_configs)
    if wanted.as_of is not None:
        clock = clock._replace(as_of_ms=api.as_of_ms(wanted.as_of), is_exact=True)
    (log_dir,), only = wanted.log_dirs, next(iter(wanted.partitions), None)
    return api.verify_against(log_dir, wanted.against, only, clock, progress)
