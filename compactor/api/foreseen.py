"""Which logs a run sets aside, said before anything of them is settled: they keep every byte."""

from dataclasses import replace

from compactor.api.round_context import Premises, judging_of
from compactor.outcome.round_report import LogStatus
from compactor.planning.judging import judge_one
from compactor.planning.outcomes import Problems, Refusal
from compactor.reason_codes import Reason
from storage.files.files import Files


class Foreseen:
    """Judges one log as files show it, and remembers which are set aside.

    `refusals`: why, by path of the partition directory. A plan that goes on from there takes them
    among its problems: of a log that is not settled, it could not say it once more.
    """

    def __init__(self, premises: Premises, problems: Problems) -> None:
        """problems: as of `plan_of`."""
        self.refusals: dict[str, Refusal] = {}
        self._judges = {
            path: judge_one(replace(judging_of(premises, broker, config), problems=problems))
            for broker, config in premises.of_brokers
            for path in broker.log_dirs
        }

    def why_set_aside(self, seen: Files, log_dir: str, topic: str, partition: int) -> Reason | None:
        """Say why; None if it is not. OSError where it cannot be listed."""
        outcome = self._judges[log_dir](seen, log_dir, topic, partition)
        refusal = outcome.refusal
        if refusal is None or refusal.status is not LogStatus.SET_ASIDE:
            return None
        self.refusals[outcome.partition.path] = refusal
        return refusal.reason
