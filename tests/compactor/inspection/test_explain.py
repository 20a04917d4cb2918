"""Every bound of one log by name, with what set it (C-4, C-23)."""

import io
import json
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from compactor.errors import ConfigError
from compactor.inspection.explain import Explanation
from compactor.outcome.json_values import to_json
from compactor.views.explanation import explanation_view
from compactor.views.report_types import report_schema
from storage.file_names import LOG, file_name
from storage.formats import checkpoint
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    explained,
    open_transaction,
    with_settings,
)


def bounds(log_dir: str, settings: dict[str, str]) -> dict[str, tuple[object, str]]:
    document = to_json(explained([log_dir], "t-0", with_settings(settings)))
    return {b["name"]: (b["value"], b["set_by"]) for b in document["bounds"]}


def test_every_bound_has_a_name_a_value_and_a_cause(tmp_path: Path) -> None:
    """E-14: log start 1 inside a segment; offsets 0-5, segments 0, 2, 4, checkpoint 2."""
    log_dir = build(tmp_path / "d")
    checkpoint.write(f"{log_dir}/{checkpoint.LOG_START}", {("t", 0): 1})
    clean_up_to(tmp_path / "d", ("t", 0, 2))
    found = bounds(log_dir, {"min.compaction.lag.ms": str(NOW_MS - 1999)})
    assert found["log start offset"] == (1, "log-start-offset-checkpoint")
    assert found["log end offset"] == (6, "last batch")
    assert found["cleaner checkpoint"] == (2, "cleaner-offset-checkpoint")
    assert found["first dirty offset"] == (2, "cleaner checkpoint")
    assert found["high watermark"] == (6, "replication-offset-checkpoint")
    assert found["active segment"] == (4, "base offset of the last of 3 segments")
    assert found["min.compaction.lag.ms"] == (2, "the youngest record is 0.001 s too young")
    assert found["first uncleanable offset"][0] == 2
    assert found["dirty ratio"][0] == 0.0
    assert found["ms past max.compaction.lag.ms"][0] == 0


@pytest.mark.parametrize("is_eligible", [True, False])
def test_an_open_transaction_is_shown_of_any_log(tmp_path: Path, is_eligible: bool) -> None:
    """C-4.5, E-47: it bounds the range of a log that has too little to clean, too."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7))
    open_transaction(tmp_path / "d" / "t-0", producer_id=7, first_offset=3, end_offset=6)
    found = bounds(log_dir, {"min.cleanable.dirty.ratio": "0" if is_eligible else "1"})
    since = "producer 7 has one open since offset 3, last written to 0 s ago "
    assert found["open transaction"] == (3, since + "(1970-01-01T00:16:40.000Z)")
    assert found["last stable offset"] == (3, "start of the oldest open transaction")
    assert found["first uncleanable offset"][0] == 2


def test_what_keeps_a_part_of_a_log_is_told_with_what_to_do(tmp_path: Path) -> None:
    """The rest of it is compacted, so no reason code says so."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7, segments=4))
    open_transaction(tmp_path / "d" / "t-0", producer_id=7, first_offset=3, end_offset=8)
    found = explained([log_dir], "t-0", with_settings({"min.cleanable.dirty.ratio": "0"}))
    assert found.outcome == "to-clean" and found.reason_code is None
    assert "would be compacted now" in found.verdict
    assert "from offset 2 on wait behind the open transaction 3 (producer 7" in found.verdict
    assert found.remedy is not None and found.remedy.commands[-1] == (
        f"compactor log abort {log_dir} t-0 --producer-id 7 --only-replica"
    )
    well = explained([build(tmp_path / "e")], "t-0", with_settings({}))
    assert (well.outcome, well.remedy) == ("to-clean", None)
    assert "wait" not in well.verdict


def test_without_open_transactions_the_high_watermark_is_stable(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 4))
    assert bounds(log_dir, {})["last stable offset"] == (6, "no transaction is open below it")
    (tmp_path / "d" / "t-0" / file_name(4, LOG)).write_bytes(bytes(70))
    assert bounds(log_dir, {})["last stable offset"][0] is None


def test_retention_of_a_topic_that_is_not_compacted_is_left_to_the_broker(tmp_path: Path) -> None:
    settings = with_settings({"cleanup.policy": "delete", "retention.ms": "1"})
    found = explained([build(tmp_path / "d")], "t-0", settings)
    assert found.outcome == "passed-over"
    assert found.reason == (
        "cleanup.policy is delete, so it is not compacted (set by --set); "
        "its retention is left to the broker, and nothing is deleted here"
    )
    assert found.retention.deleted.segments == 0


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (None, "log start offset, as there is no cleaner checkpoint"),
        (0, "log start offset, as the cleaner checkpoint is below it"),
        (9, "log start offset, as the cleaner checkpoint is past the log's end"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_shown_with_its_repair(
    tmp_path: Path, entry: int | None, cause: str
) -> None:
    """C-4.1: absent, below the log start 1, past the log end 6."""
    log_dir = build(tmp_path / "d")
    checkpoint.write(f"{log_dir}/{checkpoint.LOG_START}", {("t", 0): 1})
    if entry is not None:
        clean_up_to(tmp_path / "d", ("t", 0, entry))
    found = bounds(log_dir, {})
    assert found["cleaner checkpoint"][0] == entry
    assert found["first dirty offset"] == (1, cause)


def test_without_high_watermarks_the_log_end_is_taken(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    (tmp_path / "d" / checkpoint.REPLICATION).unlink()
    value, cause = bounds(log_dir, {})["high watermark"]
    assert value is None
    assert cause.startswith("taken to be the log end offset: there is no replication-offset")


def test_a_person_sees_the_reason_first(tmp_path: Path) -> None:
    found = explained([build(tmp_path / "d", Shape(segments=1))], "t-0", with_settings({}))
    verdict, remedy, *_ = shown(found, 200)
    assert verdict == (
        "t-0 is not compacted: only the active segment, of 79 B, which is never cleaned."
    )
    assert remedy.startswith("What to do: Nothing is cleaned before the log begins a new segment")


def shown(found: Explanation, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(explanation_view(found), crop=False)
    return out.getvalue().splitlines()


def test_a_person_sees_the_log_drawn_and_no_line_too_long(tmp_path: Path) -> None:
    """Segments 0-1 clean, 2-3 dirty, 4-5 active: a third of 80 columns each, 26 and a bit."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 2))
    lines = shown(explained([log_dir], "t-0", with_settings({})), 80)
    bar = next(line for line in lines if "█" in line)
    assert len(bar) == 80
    assert [bar.count(fill) for fill in "░█▒·"] in (
        [27, 27, 0, 26],
        [26, 27, 0, 27],
        [27, 26, 0, 27],
    )
    assert "░ clean 79 B   █ dirty 79 B   · active segment 79 B" in lines
    commands = [line for line in lines if line.startswith("  ")]  # to be pasted as they are
    assert all(len(line) <= 80 for line in lines if line not in commands)


def test_no_milliseconds_and_no_largest_number_are_shown(tmp_path: Path) -> None:
    found = explained([build(tmp_path / "d")], "t-0", with_settings({}))
    told = "\n".join(shown(found, 120)) + json.dumps(to_json(found))
    assert "9223372036854775807" not in told
    assert "max.compaction.lag.ms is not set" in told
    day = with_settings({"max.compaction.lag.ms": "990000"})
    lines = shown(explained([build(tmp_path / "e")], "t-0", day), 120)
    (overdue,) = (line for line in lines if line.startswith("past "))  # 990 s since 1 s, at 1000 s
    assert overdue.split() == (
        "past max.compaction.lag.ms 9 s max.compaction.lag.ms of 16 min 30 s".split()
    )


@pytest.mark.parametrize("name", ["t", "t-1", "x-0"])
def test_a_log_that_is_not_there_is_said_so(tmp_path: Path, name: str) -> None:
    log_dir = build(tmp_path / "d")
    with pytest.raises(ConfigError, match=r"no such partition|expected TOPIC-PARTITION"):
        explained([log_dir], name, with_settings({}))


def test_its_document_is_one_of_the_schema(tmp_path: Path) -> None:
    """A dirty ratio of a half is no whole number."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 2))
    found = json.loads(json.dumps(to_json(explained([log_dir], "t-0", COMPACT))))
    schema = report_schema()
    of_explain = {"$defs": schema["$defs"], "$ref": "#/$defs/Explanation"}
    jsonschema.validate(found, of_explain)
    assert {bound["value"] for bound in found["bounds"] if bound["name"] == "dirty ratio"} == {0.5}
