"""`undo`, from the words of the command line to lines and a result."""

from dataclasses import dataclass
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
from compactor.command_line.console import show_lines
from compactor.errors import UsageError
from compactor.settings.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoCommand(Command):
    """Bring logs back as they were before a run with --keep-originals.

    Logs that were changed since are left as they are; records that a broker has appended stay.

    [dim]compactor undo /data/originals/3f9c2b1a[/]
    """

    NAME: ClassVar[str] = "undo"

    run_dir: str = operand(
        "RUN_DIR",
        "Where a run keeps its originals: DIR/RUN_ID",
        missing="the run's own directory, DIR/RUN_ID of --keep-originals DIR",
    )
    discard: bool = option(False, "", "Remove the originals instead of bringing them back")
    dry_run: bool = option(False, "", "Show which logs would be brought back, and change nothing")
    options: api.RunOptions = part(api.RunOptions, "allowed_file_systems")
    output: Output = output_part("report", "format", "quiet", "debug")

    def execute(self) -> Result:
        """Bring back what a run kept, or drop it; show what became of each log."""
        if self.discard and self.dry_run:
            raise UsageError("--discard and --dry-run: give one of them. Nothing was changed")
        if self.discard:
            path = api.discard(self.run_dir)
            if self.output.format is Format.TABLE:
                show_lines([f"Removed: {path}"])
            return result_of(self.NAME, views.UndoDocument(discarded=path))._replace(summary=None)
        reports = api.undo(self.run_dir, self.options.allowed_file_systems, self.dry_run)
        log_dirs = [] if self.dry_run else list(dict.fromkeys(report.log_dir for report in reports))
        problems = api.start_problems(log_dirs) if log_dirs else []
        if self.output.format is Format.TABLE:
            after = (
                views.after_undo_dry_run(self.run_dir, reports)
                if self.dry_run
                else views.after_undo(self.run_dir, reports, problems)
            )
            show_lines([*views.undo_lines(reports, self.dry_run), *after])
        document = views.undo_document(self.run_dir, reports, problems, self.dry_run)
        return result_of(self.NAME, document, views.ending_of_undo(reports))
