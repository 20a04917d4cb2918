"""The lines that end what a command says tell what is to be done."""

from dataclasses import replace

from compactor.inspection.topic_settings import ConfigEntry, TopicConfiguration
from compactor.log_checks.findings import Finding
from compactor.originals.undo import UndoReport, UndoStatus
from compactor.outcome.round_report import LogStatus
from compactor.recovery.log_dir_recovery import LogDirRecovery, LogRecovery
from compactor.settings.config import Config
from compactor.verification.evidence import CleaningClock, Evidence
from compactor.verification.verify import Verification
from compactor.verification.verify_against import Comparison
from compactor.views.next_steps import (
    after_change,
    after_configs,
    after_plan,
    after_recovery,
    after_verify,
    next_steps,
)
from compactor.views.undo_report import after_undo
from tests.compactor.rounds import log, report

CLEANED = replace(log(0), status=LogStatus.CLEANED, log_dir="/data/a b", topic="t")


def test_after_a_run_the_broker_is_started_and_the_files_may_be_checked() -> None:
    assert next_steps(report(CLEANED, replace(CLEANED, partition=1))) == [
        "Next: start the broker. This checks every file first, if you like:",
        "  compactor verify '/data/a b'",
    ]


def test_after_a_dry_run_the_same_command_does_it() -> None:
    dry = replace(report(replace(CLEANED, status=LogStatus.WOULD_CLEAN)), dry_run=True)
    assert next_steps(dry) == [
        "Next: the same command without --dry-run does it. Stop the broker first."
    ]


def test_where_nothing_was_done_there_is_nothing_to_do() -> None:
    assert next_steps(report(replace(CLEANED, status=LogStatus.PASSED_OVER))) == []


def test_logs_that_failed_and_damaged_ones_come_first() -> None:
    damaged = replace(CLEANED, status=LogStatus.SET_ASIDE, is_data_problem=True)
    failed = replace(CLEANED, status=LogStatus.FAILED, partition=1)
    assert next_steps(report(damaged, failed, failed)) == [
        "2 logs failed for a reason that is not in its data: see above; once that is set right, "
        "another run takes them.",
        "1 log set aside for damage. This says what is wrong:",
        "  compactor verify '/data/a b' t-0",
    ]


def test_no_start_is_recommended_beside_a_damaged_log() -> None:
    damaged = replace(CLEANED, status=LogStatus.SET_ASIDE, is_data_problem=True, partition=1)
    assert next_steps(report(CLEANED, damaged))[-1] == (
        "Next: settle these before a broker starts here: it may cut such a log off, or end."
    )


def test_after_a_plan_comes_the_dry_run_unless_a_run_would_be_refused() -> None:
    assert after_plan(["/data/a b", "/data/c"]) == [
        "Next: this says what would go, record for record, and changes nothing:",
        "  compactor run '/data/a b' /data/c --dry-run",
    ]
    assert after_plan([]) == []


def test_after_a_recovery_the_first_log_that_was_set_aside_is_looked_at() -> None:
    sound = LogDirRecovery(
        path="/data/a b",
        partitions=2,
        has_clean_shutdown=True,
        logs=(LogRecovery("/data/a b", "t", 0),),
    )
    assert after_recovery([sound]) == [
        "Next: start the broker, or compact first:",
        "  compactor run '/data/a b'",
    ]
    damaged = replace(sound, logs=(LogRecovery("/data/a b", "t", 1, problem="damaged"),))
    assert after_recovery([sound, damaged])[1:] == ["  compactor verify '/data/a b' t-1"]


def test_after_an_undo_what_was_kept_is_still_there() -> None:
    undone = UndoReport("/data", "t", 0, UndoStatus.UNDONE)
    refused = undone._replace(status=UndoStatus.REFUSED)
    failed = undone._replace(status=UndoStatus.FAILED)
    assert after_undo("/kept/1", [undone]) == [
        "Next: start the broker.",
        "This removes what the run has kept, and is still there:",
        "  compactor undo /kept/1 --discard",
    ]
    assert after_undo("/kept/1", [undone, refused])[0].startswith("Logs that were left as they are")
    assert after_undo("/kept/1", [undone, refused, failed]) == [
        "Next: set right what has failed, and undo again; what is done stays done."
    ]


def test_after_a_proof_the_copy_may_go_and_without_one_it_may_not() -> None:
    sound, damaged = Verification(), Verification(findings=[Finding("/data/t-0/x.log", 7, "bad")])
    proven = Comparison("/before", CleaningClock(0), linked=3)
    broken = replace(proven, findings=damaged.findings)
    assert after_verify("/data", sound, proven) == [
        "Next: remove /before when you are satisfied: until then the disk gets no emptier."
    ]
    kept, sources = after_verify("/data", sound, broken)
    assert kept.startswith("Next: start no broker on /data, and keep /before as it is.")
    assert "--run-report" in sources and "--topic-configs" in sources
    evidence = Evidence(has_reports=True, config=Config())
    told = replace(broken, clock=CleaningClock(0)._replace(evidence=evidence))
    assert after_verify("/data", sound, told) == [kept]
    [fetched] = after_verify("/data", damaged, None)
    assert fetched.startswith("Next: fetch such a log again from a sound replica")
    # a copy that shares nothing may be the original of `run --output`
    for held in (None, replace(proven, linked=0)):
        assert after_verify("/data", sound, held) == []


def test_where_the_settings_of_a_topic_are_not_known_it_is_said_who_knows_them() -> None:
    known = TopicConfiguration("t", False, (ConfigEntry("retention.ms", 5, "the topic itself"),))
    unknown, gone = known._replace(entries=()), TopicConfiguration("u", True, ())
    assert after_configs([known, gone]) == []
    assert "--metadata DIR" in " ".join(after_configs([known, unknown]))


def test_after_a_change_of_one_log() -> None:
    again = ["Next: the same command without --dry-run does it."]
    assert after_change("roll", ["/data"], is_dry_run=True) == again
    rolled, command = after_change("roll", ["/data"], is_dry_run=False)
    assert rolled.startswith("Next: all that is in the log now lies in closed segments")
    assert command == "  compactor run /data"
    assert after_change("append", ["/data"], is_dry_run=False) == []
