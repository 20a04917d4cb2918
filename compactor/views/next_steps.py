"""What to do next: the last lines of a command, where something is left to do."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from compactor.host.printable import counted, first_few, one_line, printable
from compactor.host.shell_commands import compactor, named, tool, with_typed_options
from compactor.log_dirs.missing_logs import START_NO_BROKER
from compactor.outcome.round_report import CleaningReport, LogReport, LogStatus
from compactor.outcome.start_problems import StartProblem, forbid_start
from compactor.planning.remedies import REMEDIES, NamedLog, all_described, remedy_of
from compactor.reason_codes import ReasonCode, is_log_missing
from compactor.views.fitting_table import SHOWN_NAMES
from storage.file_names import DELETED, parse_partition_dir
from storage.formats.checkpoint import RECOVERY_POINT

if TYPE_CHECKING:
    from compactor.inspection.inspection import Inspection
    from compactor.inspection.topic_settings import TopicConfiguration
    from compactor.offline_log.log_offsets import LogOffsets
    from compactor.recovery.log_dir_recovery import LogDirRecovery
    from compactor.verification.verify import Verification
    from compactor.verification.verify_against import Comparison

_TO_RUN = {  # by the command of `compactor log` that has changed a log
    "roll": "Next: all that is in the log now lies in closed segments, which a run can clean:",
    "abort": "Next: a run can clean what waited for the transaction:",
}
_BRING_BACK = f"{START_NO_BROKER} Bring them back from a backup first."
_SHOWN_PROBLEMS = 5


def before_a_start(problems: Sequence[StartProblem]) -> list[str]:
    """Return what has to be repaired before a broker starts; nothing where it may start."""
    forbidding = [problem for problem in problems if problem.forbids_start]
    lines = ["Next: start no broker here before this is mended:"] if forbidding else []
    for problem in forbidding[:_SHOWN_PROBLEMS]:
        lines.append(f"{one_line(str(problem))}. {problem.repair}")
        lines += [f"  {problem.command}"] if problem.command else []
    if len(forbidding) > _SHOWN_PROBLEMS:
        more = len(forbidding) - _SHOWN_PROBLEMS
        lines.append(f"… and {more:,} more; {named('verify')} names each.")
    return lines


def _set_aside_by_start(problems: Sequence[StartProblem]) -> list[str]:
    """What a start does that is as it should be, and still worth knowing."""
    moved = [problem for problem in problems if not problem.forbids_start]
    if not moved:
        return []
    more = f"; so it is with {len(moved) - 1:,} more" if len(moved) > 1 else ""
    return [f"{one_line(str(moved[0]))}{more}."]


def records_gone(logs: Iterable[str]) -> list[str]:
    """The line with which all begins that is said of log directories with such logs."""
    names = list(logs)
    return (
        [f"Records are gone: {first_few(names, SHOWN_NAMES)}. {START_NO_BROKER}"] if names else []
    )


def names_of_gone(logs: Iterable[LogReport]) -> Iterator[str]:
    """The logs of a plan or a report whose records are gone."""
    for log in logs:
        if is_log_missing(log):
            yield log.name


def next_steps(report: CleaningReport) -> list[str]:
    """Return sentences; a command has a line of its own that begins with blanks."""
    lines = _of_logs(report.logs)
    done = report.done
    unfit = before_a_start(report.start_problems)
    if any(names_of_gone(report.logs)):
        lines.insert(0, _BRING_BACK)
    elif report.dry_run and done:
        where = "" if report.copies else " Stop the broker first."
        lines.append(f"Next: the same command without --dry-run does it.{where}")
        lines += unfit
    elif unfit:
        lines += unfit
    elif done and any(_is_damaged(log) for log in report.logs):
        lines.append(
            "Next: settle these before a broker starts here: it may cut such a log off, or end."
        )
    elif done and not report.copies:  # what becomes of copies is said with them
        log_dirs = dict.fromkeys(log.log_dir for log in done)
        lines.append("Next: start the broker. This checks every file first, if you like:")
        lines.append(f"  {compactor('verify', *log_dirs)}")
        lines += _set_aside_by_start(report.start_problems)
    return lines


def after_plan(to_clean: Sequence[str], problems: Sequence[StartProblem] = ()) -> list[str]:
    """Return what follows a plan that was not saved. to_clean: log directories of a run."""
    if not to_clean:
        return before_a_start(problems)  # each refusal says what to do
    return [
        "Next: this says what would go, record for record, and changes nothing:",
        f"  {with_typed_options('run', *to_clean, options=('--dry-run',))}",
        *before_a_start(problems),
    ]


def after_recovery(
    recovered: "Sequence[LogDirRecovery]", problems: Sequence[StartProblem] = ()
) -> list[str]:
    """Return what follows a recovery, for a log that was set aside, or where all is well."""
    found = [log for log_dir in recovered for log in log_dir.logs]
    if any(map(is_log_missing, found)):
        return [f"Next: {_BRING_BACK[0].lower()}{_BRING_BACK[1:]}"]
    for log_dir in recovered:
        for log in log_dir.logs:
            if log.problem is not None:
                return [
                    "Next: see what is wrong with a log that was set aside:",
                    f"  {compactor('verify', log_dir.path, log.name)}",
                    *before_a_start(problems),
                ]
    if forbid_start(problems):
        return before_a_start(problems)
    run = f"  {compactor('run', *(log_dir.path for log_dir in recovered))}"
    if any(log_dir.notices for log_dir in recovered):
        absent = "Start no broker here whose logs those are that are not here."
        return ["Next: compact it, if you like:", run, absent]
    return ["Next: start the broker, or compact first:", run, *_set_aside_by_start(problems)]


def after_verify(
    log_dir: str, verification: "Verification", compared: "Comparison | None"
) -> list[str]:
    """Return what follows a verification: with findings what not to do; else what can go."""
    if compared is not None and compared.findings:
        sources, codes = _sources(compared), {each.reason_code for each in compared.findings}
        if sources and codes == {ReasonCode.UNEXPLAINED}:
            return [
                f"Next: compare again, and give {'; '.join(sources)}. Until that explains what is "
                f"gone, start no broker on {printable(log_dir)}, and keep "
                f"{printable(compared.before)} as it is."
            ]
        return [
            f"Next: start no broker on {printable(log_dir)}, and keep {printable(compared.before)} "
            f"as it is. If the run has kept originals, {named('undo')} brings the logs back.",
            *(
                [f"What may explain a finding, and was not given: {'; '.join(sources)}."]
                if sources
                else []
            ),
        ]
    if any(map(is_log_missing, verification.findings)):
        return [f"Next: {_BRING_BACK[0].lower()}{_BRING_BACK[1:]}"]
    unfit = [
        *before_a_start(verification.start_problems),
        *_of_renamable(verification),
        *_of_removable(verification),
        *_of_checkpoints(verification),
    ]
    if verification.rebuilt and not verification.other_findings:
        return [*unfit, *_of_rebuilt(verification, is_start_forbidden=bool(unfit))]
    if verification.findings:
        rebuilt = [f"{_rebuilt_words(verification)}."] if verification.rebuilt else []
        return [*unfit, *rebuilt, *_of_findings(log_dir, verification)]
    if compared is not None and compared.linked:
        return [
            f"Next: remove {printable(compared.before)} when you are satisfied: until then the "
            "disk gets no emptier."
        ]
    return []


def _of_findings(log_dir: str, verification: "Verification") -> list[str]:
    """Say what helps once for each kind: a log is fetched again only where its data is damaged."""
    steps: list[str] = []
    is_some_mended = bool(
        verification.rebuilt
        or verification.to_remove
        or verification.to_rename
        or verification.checkpoints
    )
    is_any_damaged = False
    for code, finding in {
        each.reason_code: each for each in verification.other_findings[::-1]
    }.items():
        if code is ReasonCode.DAMAGED or code not in REMEDIES:
            is_any_damaged = True
            continue
        own_dir = os.path.dirname(finding.path)
        key = parse_partition_dir(os.path.basename(own_dir))
        place = (
            NamedLog(log_dir, "", 0) if key is None else NamedLog(os.path.dirname(own_dir), *key)
        )
        remedy = remedy_of(code, place, may_start=not forbid_start(verification.start_problems))
        steps.append(f"Next: {remedy.words[:1].lower()}{remedy.words[1:]}")
        steps += [f"  {command}" for command in remedy.commands]
    if is_any_damaged:
        those = "each log with another finding" if is_some_mended or steps else "such a log"
        steps.append(
            f"Next: fetch {those} again from a sound replica (move it away while the broker is "
            "stopped), or from a backup. A run sets it aside, and cleans the others."
        )
    return steps


def _of_renamable(verification: "Verification") -> list[str]:
    """Return what helps segments that exist under another name."""
    paths = [path for filling in verification.to_rename.values() for path in filling]
    if not paths:
        return []
    files = "the file below" if len(paths) == 1 else "the files below"
    return [
        f"Next: rename {files} back before a broker starts here and removes what ends in "
        f"{DELETED}. All that is missing is there; a start makes the indexes anew.",
        *(f"  {tool('mv', '--', path, path.removesuffix(DELETED))}" for path in paths),
    ]


def _of_removable(verification: "Verification") -> list[str]:
    """Indexes that a broker believes, though the log contradicts them."""
    if not verification.to_remove:
        return []
    indexes = counted(len(verification.to_remove), "index", "indexes")
    return [
        f"Next: remove {indexes} while no broker is at work here: its start makes them anew from "
        "the log, of which no record is damaged.",
        f"  {tool('rm', '--', *sorted(verification.to_remove))}",
    ]


def _of_checkpoints(verification: "Verification") -> list[str]:
    """Return what helps checkpoints with findings that a broker's start does not mind."""
    steps: list[str] = []
    for path in verification.checkpoints:
        back = f"Next: bring {printable(path)} back from a backup"
        if path.endswith(RECOVERY_POINT):
            steps += [
                f"{back}, or, if no log has lost its end, empty it: a broker then checks every "
                "segment. No log has to be fetched for it.",
                f"  {tool('truncate', '-s', '0', path)}",
            ]
        else:
            steps.append(
                f"{back}, or leave it: a broker that starts goes by the log, and writes it anew. "
                "No log has to be fetched for it."
            )
    return steps


def _of_rebuilt(verification: "Verification", is_start_forbidden: bool) -> list[str]:
    """No record is damaged, and nothing has to be fetched."""
    words = f"{_rebuilt_words(verification)}; no record is damaged"
    if is_start_forbidden:
        return [f"{words}."]
    return [f"Next: start the broker, if none is at work here. {words}."]


def _rebuilt_words(verification: "Verification") -> str:
    return f"A start rebuilds {counted(len(verification.rebuilt), 'index', 'indexes')} from the log"


def _sources(compared: "Comparison") -> list[str]:
    """Return the sources that were left out, and may explain what is gone."""
    evidence = compared.clock.evidence
    sources = [] if evidence.has_reports else ["--run-report, the report of each command since"]
    if evidence.config is None:
        sources.append("--topic-configs, the settings of the topics")
    return sources


def after_configs(configurations: "Sequence[TopicConfiguration]") -> list[str]:
    """Return what follows `configs` where no source has a topic's settings."""
    if all(topic.entries or topic.is_deleted for topic in configurations):
        return []
    return [
        "Next: say where the broker's metadata log is, by --metadata DIR, or give what this",
        "prints, by --topic-configs configs.txt:",
        f"  {all_described()}",
    ]


def after_inspection(inspection: "Inspection") -> list[str]:
    """Return what follows an inspection, for the first log with an open transaction."""
    for log in inspection.logs:
        if log.open_transactions:
            return _of_open_transaction(log.log_dir, log.name)
    return []


def after_offsets(log_dir: str, offsets: "LogOffsets") -> list[str]:
    """Return what follows `log offsets` of a log with an open transaction."""
    return _of_open_transaction(log_dir, offsets.name) if offsets.open_transactions else []


def after_change(
    command: str,
    log_dirs: Sequence[str],
    is_dry_run: bool,
    problems: Sequence[StartProblem] = (),
) -> list[str]:
    """Return what to do next after a `log` command has changed a log.

    command: as in `log COMMAND`; log_dirs: of the log.
    """
    if is_dry_run:
        return ["Next: the same command without --dry-run does it."]
    if command == "move":
        return before_a_start(problems) if forbid_start(problems) else ["Next: start the broker."]
    return [_TO_RUN[command], f"  {compactor('run', *log_dirs)}"] if command in _TO_RUN else []


def _of_open_transaction(log_dir: str, log: str) -> list[str]:
    return [
        "Next: see what can be done about an open transaction:",
        f"  {compactor('explain', log_dir, log)}",
    ]


def _of_logs(logs: Sequence[LogReport]) -> list[str]:
    lines = []
    failed = [log for log in logs if log.status is LogStatus.FAILED]
    if failed:
        them = "it" if len(failed) == 1 else "them"
        lines.append(
            f"{counted(len(failed), 'log')} failed for a reason that is not in its data: see "
            f"above; once that is set right, another run takes {them}."
        )
    damaged = [log for log in logs if _is_damaged(log)]
    if damaged:
        first = damaged[0]
        lines += [
            f"{counted(len(damaged), 'log')} set aside for damage. This says what is wrong:",
            f"  {compactor('verify', first.log_dir, first.name)}",
        ]
    return lines


def _is_damaged(log: LogReport) -> bool:
    return log.status is LogStatus.SET_ASIDE and log.is_data_problem
