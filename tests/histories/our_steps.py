"""What we do to log directories, and what a model has to know of it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from storage.formats import checkpoint
from tests.histories import our_commands, process_runs
from tests.histories.cuts import NEVER, Cuts, Limits
from tests.histories.log_model import KeptRun, LogModel
from tests.histories.our_commands import Ended
from tests.histories.script import Step
from tests.histories.world import World

OK, FAILED, REFUSED, PARTIAL = 0, 1, 3, 4
UNDONE = ("undone", "as-before", "failed")


class OurSteps:
    def __init__(self, world: World) -> None:
        self._world = world
        self._kept_dir, self.work_dir = world.root / "kept", world.root / "work"
        self._runs: list[str | None] = []  # that had to keep their originals: where, if they did
        for path in (self._kept_dir, self.work_dir):
            path.mkdir()

    def plan(self, common: Step, _: Sequence[Step]) -> None:
        self._world.now_ms += common["advance"]
        words = ["plan", *self._places({}), "--as-of", str(self._world.now_ms)]
        self._expect(self._carry_out(words), OK, PARTIAL)

    def run(self, common: Step, own: Sequence[Step]) -> None:
        world = self._world
        world.now_ms += common["advance"]
        keeps = common["keep"] and not common["dry"]
        if keeps:
            self._runs.append(None)
        taken = [model for model, step in world.living(own) if step["take"] and model.exists]
        if not taken:
            return
        before = set(os.listdir(self._kept_dir))
        ended, was_cut = self._cut(self._words_of_run(common, taken), common, own)
        if not was_cut:
            self._expect(ended, OK, REFUSED, PARTIAL)
        if common["dry"] or (ended.code == REFUSED and not was_cut):
            return
        self._count_statuses(ended)
        made = next(iter(set(os.listdir(self._kept_dir)) - before), None)
        if keeps:
            self._runs[-1] = made
        for model in taken:
            settings = model.config | common["settings"]
            as_of_ms = world.now_ms + common["skew"]
            if made is not None:
                model.kept.append(KeptRun(made, model.life, model.start_floor, model.start_peak))
            model.cleaned(as_of_ms, settings)
            model.retained(as_of_ms, settings)
        world.settled |= not was_cut

    def _words_of_run(self, common: Step, taken: Sequence[LogModel]) -> list[str]:
        words = ["run", *self._places(common["settings"]), "--work-dir", str(self.work_dir)]
        words += ["--as-of", str(self._world.now_ms + common["skew"])]
        if len(taken) < len(self._world.models):
            words += ["--include", "|".join(model.name for model in taken)]
        words += ["--dry-run"] if common["dry"] else []
        words += ["--recover-first"] if common["recover"] else []
        words += ["--keep-originals", str(self._kept_dir)] if common["keep"] else []
        return words

    def recover(self, common: Step, own: Sequence[Step]) -> None:
        ended, was_cut = self._cut(["recover", *self._places({})], common, own)
        if was_cut:
            return
        self._expect(ended, OK, PARTIAL)
        self._world.settled = True
        for log in ended.document.get("logs", ()):
            model = self._world.by_partition.get(f"{log['topic']}-{log['partition']}")
            if log.get("problem") and model is not None:
                self._world.note(model, [f"not recovered: {log['problem']}"])

    def undo(self, common: Step, own: Sequence[Step]) -> None:
        name = self._kept_name(common["back"])
        if name is None:
            return
        ended, was_cut = self._cut(["undo", str(self._kept_dir / name)], common, own)
        if not was_cut:
            self._expect(ended, OK, FAILED, REFUSED, PARTIAL)
        statuses = {
            f"{log['topic']}-{log['partition']}": log["status"]
            for log in ended.document.get("logs", ())
        }
        for model in self._world.models:
            status = statuses.get(model.partition)
            self._world.counts[f"undo of a log: {status or 'not in that run'}"] += 1
            if was_cut or status in UNDONE:
                model.undone(name)
                model.undo_was_cut = was_cut

    def discard(self, common: Step, _: Sequence[Step]) -> None:
        name = self._kept_name(common["back"])
        if name is not None:
            ended = self._carry_out(["undo", "--discard", str(self._kept_dir / name)])
            self._expect(ended, OK)

    def verify(self, _: Step, __: Sequence[Step]) -> None:
        world = self._world
        for path in world.dirs if world.settled else ():
            ended = self._carry_out(["verify", str(path)])
            self._expect(ended, OK, PARTIAL)
            for finding in ended.document.get("findings", ()):
                found_in = Path(finding["path"])
                names = found_in.name, found_in.parent.name
                model = next(filter(None, map(world.by_partition.get, names)), None)
                if model is None:
                    if world.stopped_well:  # else its checkpoints may be of an earlier time
                        world.note_all(f"verify: {finding}")
                elif not _is_expected(model, finding):
                    world.note(model, [f"verify: {finding}"])

    def _kept_name(self, back: int) -> str | None:
        """The run that lies so many back among those that had to keep their originals."""
        runs = [name for name in self._runs if name is None or self._is_kept(name)]
        return runs[-1 - back] if back < len(runs) else None

    def _is_kept(self, name: str) -> bool:
        return (self._kept_dir / name / "run.json").exists()  # or it was killed before it began

    def _places(self, settings: dict[str, str]) -> list[str]:
        topics = {model.name: model.config | settings for model in self._world.models}
        path = self._world.root / "topics.json"
        path.write_text(json.dumps(topics))
        return [*map(str, self._world.dirs), "--topic-configs", str(path)]

    def _cut(self, words: Sequence[str], common: Step, own: Sequence[Step]) -> tuple[Ended, bool]:
        """Carry a command out, or as far as it comes; whether it was cut short."""
        if "engine" in common:
            return self._in_processes(words, common["engine"], common.get("moment"))
        kill = common.get("kill")
        if kill is None:
            return self._carry_out(words), False
        of_logs = kill != "all"
        models = self._world.models
        cuts = Cuts(
            [*self._world.dirs, self._kept_dir],
            self._world.root / "trash",
            Limits(
                by_log={
                    model.partition: step.get("cut", NEVER) if of_logs else NEVER
                    for model, step in zip(models, own, strict=True)
                },
                of_all=NEVER if of_logs else common["root_cut"],
                counts_from=checkpoint.LOG_START if kill == "retention" else "",
                ends_at=checkpoint.CLEANER_OFFSET if kill == "logs" and words[0] == "run" else "",
            ),
        )
        ended = self._carry_out(words, cuts)
        self._world.counts["ours: killed"] += cuts.happened
        self._world.counts["logs that a kill of ours found at work"] += cuts.stopped_logs
        self._world.settled &= not cuts.happened
        return ended, cuts.happened

    def _in_processes(
        self, words: Sequence[str], engine: str, moment: Sequence[str | float] | None
    ) -> tuple[Ended, bool]:
        world = self._world
        run = process_runs.carry_out(words, engine, moment, world.root)
        world.counts[f"ours in processes: {run.what}"] += 1
        world.settled &= not run.was_hit
        if not run.is_gone:
            world.note_all("processes of the killed run did not end")
        return run.ended, run.was_hit

    def _carry_out(self, words: Sequence[str], cuts: Cuts | None = None) -> Ended:
        ended = our_commands.carry_out(words, cuts)
        self._world.counts[f"ours: {words[0]} {ended.code}"] += 1
        return ended

    def _expect(self, ended: Ended, *codes: int) -> None:
        if ended.code not in codes or ended.is_unforeseen:
            told = ended.document.get("error") or ended.said
            self._world.note_all(f"exit code {ended.code}: {told}")

    def _count_statuses(self, ended: Ended) -> None:
        for log in ended.document.get("logs", ()):
            self._world.counts[f"run of a log: {log['status']}"] += 1


def _is_expected(model: LogModel, finding: Mapping[str, Any]) -> bool:
    """A broker that truncates a segment before it has looked at its time index forgets the largest
    timestamp of what is left. An undo brings leader epochs back before the segments, and a broker
    may start in between.
    """
    if model.undo_was_cut and "leader-epoch-checkpoint has epoch" in finding["problem"]:
        return True
    is_of_time = finding["path"].endswith(".timeindex") and "timestamp -1" in finding["problem"]
    return model.was_truncated and is_of_time
