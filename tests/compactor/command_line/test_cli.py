"""Words in, exit code and summary out, with rounds that are made up."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.cleaning import cleaner_manager
from compactor.cleaning.cleaner_manager import RunSettings
from compactor.errors import CleaningFailedError, RefusedError
from compactor.host.progress import SWAP_STAGE, ProgressSink
from compactor.jobs.engine_choice import ChosenEngine
from compactor.outcome.json_values import to_json
from compactor.outcome.round_report import CleaningReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.settings.rules import EngineChoice, RunOptions
from tests.compactor.rounds import log, report
from tests.support.file_states import state_of
from tests.support.local_command import run_command

Round = Callable[[RoundPlan, RunSettings, ProgressSink], CleaningReport]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Round], None]:
    """Puts a made-up round in the engine's place."""
    return lambda made_up: monkeypatch.setattr(cleaner_manager, "run_round", made_up)


Engine = Callable[[Round], None]
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


class TestRun:
    def test_arguments_reach_the_engine(
        self, log_dir: Path, engine: Engine, tmp_path: Path
    ) -> None:
        seen: list[tuple[RoundPlan, RunSettings]] = []

        def run_round(plan: RoundPlan, settings: RunSettings, _: ProgressSink) -> CleaningReport:
            seen.append((plan, settings))
            return report()

        engine(run_round)
        options = ["--dry-run", "--as-of", "5000", "--any-clock", "--master", "local[1]", "--debug"]
        options += ["--work-dir", str(tmp_path / "w"), *COMPACTED]
        assert run_command("run", log_dir, *options).code == 0
        [(plan, settings)] = seen
        assert plan.as_of_ms == 5000
        assert [log.name for log in plan.logs] == ["orders-0"]
        assert settings == RunSettings(
            options=RunOptions(dry_run=True, work_dir=str(tmp_path / "w"), master="local[1]"),
            run_id=settings.run_id,
            started_at_ms=settings.started_at_ms,
            chosen=ChosenEngine(EngineChoice.SPARK, "the master is local[1]"),
        )

    def test_json_is_all_there_is_on_standard_output(self, log_dir: Path, engine: Engine) -> None:
        made_up = report(log(0), log(1, LogStatus.SET_ASIDE, "bad"))

        def run_round(_: RoundPlan, __: RunSettings, progress: ProgressSink) -> CleaningReport:
            progress.stage("scan", 1)
            progress.message("careful")
            return made_up

        engine(run_round)
        ended = run_command("run", log_dir, "--format", "json")
        said = to_json(made_up) | {"conditions_met": []}
        assert json.loads(ended.out).items() >= said.items()
        assert ended.out.count("\n") == 1
        assert "careful" in ended.error

    def test_the_report_is_the_whole_document(
        self, log_dir: Path, engine: Engine, tmp_path: Path
    ) -> None:
        engine(lambda *_: report(log(0)))
        path = tmp_path / "r.json"
        assert run_command("run", log_dir, "--report", path).code == 0
        expected = to_json(report(log(0))) | {"conditions_met": []}
        assert json.loads(path.read_text()).items() >= expected.items()
        assert sorted(os.listdir(tmp_path)) == ["log", "r.json"]

    def test_a_report_that_cannot_be_written_fails_a_round_that_went_well(
        self, log_dir: Path, engine: Engine, tmp_path: Path
    ) -> None:
        def run_round(*_: object) -> CleaningReport:
            (tmp_path / "r.json").mkdir()  # meanwhile
            return report(log(0))

        engine(run_round)
        ended = run_command("run", log_dir, "--report", tmp_path / "r.json")
        assert ended.code == ended.summary["exit_code"] == 1
        assert " was not written; the command itself has ended." in ended.error

    def test_an_error_leaves_a_report_too(
        self, log_dir: Path, engine: Engine, tmp_path: Path
    ) -> None:
        engine(failing(CleaningFailedError("no Java 17 was found")))
        ended = run_command("run", log_dir, "--report", tmp_path / "r.json")
        assert ended.code == 1
        said = {
            "schema_version": 2,
            "command": "run",
            "status": "failed",
            "exit_code": 1,
            "reason_code": "spark-failed",
            "error": "no Java 17 was found",
            "changed": False,
        }
        assert json.loads((tmp_path / "r.json").read_text()).items() >= said.items()
        assert ended.summary.items() >= said.items()

    def test_an_error_before_the_swap_says_that_nothing_was_changed(
        self, log_dir: Path, engine: Engine
    ) -> None:
        engine(failing(CleaningFailedError("a job was lost"), "scan"))
        last = run_command("run", log_dir).error.splitlines()[-1]
        assert last == "compactor: a job was lost. Nothing was changed."

    def test_what_an_error_says_itself_is_not_said_twice(
        self, log_dir: Path, engine: Engine
    ) -> None:
        engine(failing(RefusedError("locked. Nothing was changed")))
        ended = run_command("run", log_dir)
        assert ended.code == 3
        assert ended.error.lower().count("nothing was changed") == 1

    @pytest.mark.parametrize(
        ("error", "code", "word"),
        [(KeyboardInterrupt(), 130, "interrupted"), (OSError(28, "No space left"), 1, "No space")],
    )
    def test_an_error_in_the_swap_says_what_was_changed(
        self,
        log_dir: Path,
        engine: Engine,
        error: BaseException,
        code: int,
        word: str,
    ) -> None:
        engine(failing(error, SWAP_STAGE))
        ended = run_command("run", log_dir)
        assert ended.code == code
        last = ended.error.splitlines()[-1]
        assert last.startswith(f"compactor: {word}")
        assert "2 groups of segments had been swapped in and stay" in last
        assert "Nothing was changed" not in ended.error

    def test_sigterm_ends_a_run_as_ctrl_c_does(self, log_dir: Path, engine: Engine) -> None:
        def run_round(*_: object) -> CleaningReport:
            os.kill(os.getpid(), signal.SIGTERM)
            return report()

        engine(run_round)
        before = signal.getsignal(signal.SIGTERM)
        ended = run_command("run", log_dir)
        assert (ended.code, ended.summary["status"]) == (143, "interrupted")
        assert ended.error.endswith("compactor: terminated. Nothing was changed.\n")
        assert signal.getsignal(signal.SIGTERM) is before

    def test_an_unforeseen_error_has_a_traceback_only_with_debug(
        self, log_dir: Path, engine: Engine
    ) -> None:
        engine(failing(ZeroDivisionError("division\nby zero")))
        quiet = run_command("run", log_dir)
        assert quiet.code == 1
        assert "internal error: ZeroDivisionError: division. Nothing was changed." in quiet.error
        assert "--debug shows where" in quiet.error
        assert "Traceback" not in quiet.error
        loud = run_command("run", log_dir, "--debug")
        assert loud.code == 1
        assert "raise error" in loud.error

    def test_the_directory_is_locked_meanwhile_and_left_as_it_was(
        self, log_dir: Path, engine: Engine
    ) -> None:
        """F-15.1."""
        held: list[bool] = []

        def run_round(*_: object) -> CleaningReport:
            held.append((log_dir / ".lock").exists())
            return report()

        engine(run_round)
        before = state_of(log_dir)
        assert run_command("run", log_dir).code == 0
        assert run_command("run", log_dir, "--dry-run").code == 0
        assert held == [True, False]
        assert state_of(log_dir) == before


class TestPlan:
    def test_settings_of_the_command_line_win(self, log_dir: Path) -> None:
        words = ["plan", log_dir, *COMPACTED]
        words += ["--set", "cleanup.policy=delete"]
        assert run_command(*words).summary["totals"]["to_clean"] == 0

    @pytest.mark.parametrize("policy", ["compact", "compact,delete"])
    @pytest.mark.parametrize("words", [["plan"], ["run"], ["run", "--dry-run"]])
    def test_a_policy_for_every_topic_is_refused(
        self, log_dir: Path, words: list[str], policy: str
    ) -> None:
        """Of topics whose policy is delete, most would go."""
        before = state_of(log_dir)
        ended = run_command(*words, log_dir, "--set", f"cleanup.policy={policy}")
        assert (ended.code, ended.summary["status"]) == (2, "usage")
        assert f"--set cleanup.policy={policy}: would compact every topic" in ended.error
        assert "--include REGEX" in ended.error and "--topic-configs FILE" in ended.error
        assert state_of(log_dir) == before

    def test_one_that_compacts_nothing_needs_no_topics(self, log_dir: Path) -> None:
        assert run_command("plan", log_dir, "--set", "cleanup.policy=delete").code == 0

    @pytest.mark.parametrize("policy", ["delete", "compact"])
    def test_a_topics_own_policy_stands(self, log_dir: Path, tmp_path: Path, policy: str) -> None:
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"orders": {"cleanup.policy": policy}}))
        ended = run_command("plan", log_dir, *COMPACTED, "--topic-configs", topics)
        assert ended.summary["totals"]["to_clean"] == int(policy == "compact")

    def test_one_named_to_explain_may_be_given_any_policy(self, log_dir: Path) -> None:
        ended = run_command("explain", log_dir, "orders-0", "--set", "cleanup.policy=compact")
        assert (ended.code, "orders-0 would be compacted now" in ended.out) == (0, True)

    def test_topics_can_be_left_out(self, log_dir: Path) -> None:
        words = ["plan", log_dir, "--set", "cleanup.policy=compact"]
        assert (
            run_command(*words, "--include", ".*", "--exclude", "ord.*").summary["totals"][
                "to_clean"
            ]
            == 0
        )
        assert run_command(*words, "--include", "ord.*").summary["totals"]["to_clean"] == 1

    @pytest.mark.parametrize("command", ["plan", "run"])
    def test_filters_that_match_nothing(
        self, log_dir: Path, engine: Engine, tmp_path: Path, command: str
    ) -> None:
        engine(lambda *_: report())
        before = state_of(log_dir)
        ended = run_command(command, log_dir, "--include", "ord")
        problem = "--include 'ord': matches no topic here: it has to match the whole name, and "
        problem += "matches only a part of orders"
        assert (ended.code, ended.summary["error"]) == (2, problem)
        assert ended.error == f"compactor: {problem}. Nothing was changed.\n"
        assert state_of(log_dir) == before
        topics = tmp_path / "topics.json"
        topics.write_text('{"orders": {"cleanup.policy": "delete"}, "prices": {}}')
        words = [command, log_dir, "--exclude", "ordres", "--topic-configs", topics]
        warnings = [
            "--exclude 'ordres': matches no topic here; did you mean orders?",
            "--topic-configs: 1 of its 2 topics not here: prices",
        ]
        shown = run_command(*words)
        for warning in warnings:
            assert f"\nWarning: {warning}\n" in shown.out
        assert (shown.code, "arning" in shown.error) == (0, False)
        ended = run_command(*words, "--format", "json")
        assert ended.summary["warnings"] == warnings
        assert ended.error == "".join(f"compactor: warning: {line}\n" for line in warnings)

    def test_the_high_watermark_can_be_looked_past(self, log_dir: Path) -> None:
        (log_dir / "replication-offset-checkpoint").write_text("0\n1\norders 0 0\n")
        words = ["plan", log_dir, *COMPACTED]
        assert run_command(*words).summary["totals"]["to_clean"] == 0
        assert run_command(*words, "--assume-fully-replicated").summary["totals"]["to_clean"] == 1


def failing(error: BaseException, stage: str | None = None) -> Round:
    def run_round(_: RoundPlan, __: RunSettings, progress: ProgressSink) -> CleaningReport:
        if stage is not None:
            progress.stage(stage, 9)
            if stage == SWAP_STAGE:
                progress.swapped(2)
        raise error

    return run_round


def test_help_is_shown_without_words() -> None:
    ended = run_command()
    assert ended.code == 2
    assert "Examples" in ended.out


def test_the_entry_file_is_the_one_for_spark_submit() -> None:
    ended = run_command("--entry-file")
    assert ended.code == 0
    assert Path(ended.out.strip()).name == "__main__.py"
    assert Path(ended.out.strip()).is_file()
