"""`log roll` and its like, from the words of the command line to a result."""

import sys
from collections.abc import Sequence

from compactor import account, api
from compactor.command_line.console import show_lines
from compactor.command_line.log_requests import ChangeCall, SharedArguments
from compactor.command_line.requests import Format, Result
from compactor.exit_codes import ExitCode
from compactor.host.log_lines import log_line
from compactor.host.printable import printable
from compactor.views.log_change import change_document, change_lines
from compactor.views.next_steps import after_change
from compactor.views.report_json import summary

RECOVERY = (
    "no broker has stopped cleanly here. --recover-first recovers every log of this directory, as "
    "a broker that starts would, and then asks about the change"
)
YES = ("y", "yes")


def result_of(name: str, wanted: SharedArguments, change: ChangeCall) -> Result:
    """Change one log, once that is agreed to; show what came of it."""
    log = f"{wanted.log.topic_partition} in {wanted.log.log_dir}"
    told: list[str] = []

    def confirm(outcome: api.Outcome) -> bool:
        if not wanted.yes and sys.stdout.isatty():
            told.extend(change_lines(outcome))
        return agrees([f"{log}:", *change_lines(outcome)], wanted.yes)

    def confirm_recovery(log_dir: str) -> bool:
        return agrees([f"{log_dir}: {RECOVERY}"], wanted.yes)

    options = api.ChangeOptions(
        rules=wanted.log.rules,
        only_replica=wanted.only_replica,
        recover_first=wanted.recover_first,
        dry_run=wanted.dry_run,
        confirm_recovery=confirm_recovery,
        confirm=confirm,
        allowed_file_systems=wanted.allowed_file_systems,
    )
    outcome = change(wanted.log.log_dir, wanted.log.topic_partition, options)
    if wanted.format is Format.TABLE:
        would = "would be done" if wanted.dry_run else "done"
        what = would if outcome.is_changed else "nothing was changed"
        problems = api.start_problems(account.current().log_dirs) if name == "move" else ()
        after = after_change(name, account.current().log_dirs, wanted.dry_run, problems)
        after = after if outcome.is_changed else []
        new = [line for line in change_lines(outcome) if line not in told]
        show_lines([f"{log}: {what}", *new, *after])
    begin = summary(f"log {name}", ExitCode.OK)
    document = change_document(wanted.log.topic_partition, outcome, wanted.dry_run)
    return Result(begin | document, begin)


def agrees(lines: Sequence[str], yes: bool) -> bool:
    """Show what will be done, and ask; where yes was said already, neither. Without a terminal to
    ask on, nobody agrees."""
    if yes:
        return True
    for line in lines:
        log_line(printable(line))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        log_line("There is no terminal to ask on: give --yes to do this.")
        return False
    sys.stderr.write("Do this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in YES
