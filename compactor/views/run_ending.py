"""How a run would end, as JSON: the same of `plan` and of `doctor`."""

from compactor.log_dirs.preconditions import RunEnding
from compactor.views.report_json import JsonObject, ending


def run_ending_document(run: RunEnding) -> JsonObject:
    """The field `run_would_end`."""
    return ending(run.exit_code, run.reason_code) | {
        "obstacles": [
            {
                **ending(obstacle.exit_code, obstacle.reason_code),
                "path": obstacle.path,
                "errno": obstacle.errno,
                "problem": obstacle.problem,
                "remedy": obstacle.remedy,
            }
            for obstacle in run.obstacles
        ]
    }
