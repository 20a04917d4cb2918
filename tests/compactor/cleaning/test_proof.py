"""The proof sees whatever is missing, double, out of order or another record."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cleaner_jobs.messages import LogPlan, Part, PartSection, Rewritten, SegmentGroup, Verdict
from compactor.cleaning.proof import (
    check_group,
    check_null_keys,
    check_round,
    check_scan,
    check_verdicts,
    require_offsets_in_order,
)
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from storage.errors import CorruptFileError
from storage.file_names import Segment
from tests.compactor.log_dirs.test_set_aside_memory import Compactor, compactor
from tests.support.made_log import files_of, keyed, make_partition
from tests.support.made_values import part, rewritten


def segment(base_offset: int, log_bytes: int) -> Segment:
    return Segment(base_offset, log_bytes, 0, 0, None, 0, 0)


PLAN = LogPlan(
    0, "/d", "t", 0, "/d/t-0", 0, 50,
    (
        SegmentGroup((segment(0, 100), segment(10, 0), segment(20, 60))),
        SegmentGroup((segment(30, 80),)),
    ),
    1, 1, 1, (),
)  # fmt: skip


PARTS = [
    part(sections=(PartSection(0, 0, 70, 0, 0, 5, 0),)),
    part(sections=(PartSection(0, 70, 100, 0, 6, 9, 0), PartSection(2, 0, 60, 3, 20, 29, 0))),
    part(group=1, sections=(PartSection(0, 0, 80, 0, 30, 49, 0),)),
]


def test_a_log_that_was_read_whole_and_once() -> None:
    assert check_scan(PLAN, PARTS) is None


def with_section(number: int, section: int, **values: int) -> list[Part]:
    sections = list(PARTS[number].sections)
    sections[section] = sections[section]._replace(**values)
    return [*PARTS[:number], PARTS[number]._replace(sections=tuple(sections)), *PARTS[number + 1 :]]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "segment 0 was"),
        (PARTS[1:], "segment 0 was"),
        ([PARTS[0], PARTS[2]], "segment 0 was"),
        (PARTS[:2], "segment 30 was"),
        ([PARTS[1], PARTS[0], PARTS[2]], "segment 0 was"),
        ([*PARTS, PARTS[2]], "segment 30 was"),
        ([PARTS[0], PARTS[0], *PARTS[1:]], "segment 0 was"),
        (with_section(1, 1, end=59), "segment 20 was"),
        (with_section(1, 1, segment=1), "segment 10 was"),
        (with_section(1, 1, start=1), "segment 20 was"),
        (with_section(1, 1, segment=3), "segment 3 of group 0 was read, which is not in the plan"),
        (with_section(1, 1, segment=-1), "segment -1 of group 0 was read, which is not in"),
        (
            [*PARTS, part(group=2, sections=(PartSection(0, 0, 1, 0, 60, 60, 0),))],
            "0 of group 2 was read",
        ),
        (
            [*PARTS, part(group=-1, sections=(PartSection(0, 0, 1, 0, 60, 60, 0),))],
            "0 of group -1 was",
        ),
    ],
)
def test_what_is_missing_double_or_out_of_order(parts: list[Part], problem: str) -> None:
    assert problem in (check_scan(PLAN, parts) or "")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (with_section(1, 0, first_offset=5), f"{0:020}.log, byte 70: offset 5 is not above 5"),
        (with_section(1, 1, first_offset=9), f"{20:020}.log, byte 0: offset 9 is not above 9"),
        (with_section(2, 0, first_offset=29), f"{30:020}.log, byte 0: offset 29 is not above 29"),
        (with_section(2, 0, last_offset=50), f"{30:020}.log, byte 0: offset 50 is not below 50"),
    ],
)
def test_offsets_that_overlap_are_corrupt(parts: list[Part], told: str) -> None:
    require_offsets_in_order(PLAN, PARTS)
    with pytest.raises(CorruptFileError) as caught:
        require_offsets_in_order(PLAN, parts)
    assert str(caught.value).startswith(f"/d/t-0/{told}")


# 2^64 - 1 and 20 may stay; as sums modulo 2^64
MAPPED = [
    part(survivors=3, survivor_fingerprints=2**64 - 1, control_records=2),
    part(survivors=4, survivor_fingerprints=20, control_records=1),
]
PIECES = [
    rewritten(
        records_kept=1,
        kept_fingerprints=15,
        control_records_kept=1,
        dropped=2,
        dropped_fingerprints=2**64 - 4,
    ),
    rewritten(
        number=1,
        records_kept=3,
        kept_fingerprints=7,
        control_records_kept=1,
        dropped=1,
        dropped_fingerprints=1,
    ),
]


def test_sums_that_fit() -> None:
    """-1 + 20 = 15 - 4 + 7 + 1; 3 + 4 = 1 + 2 + 3 + 1; of 3 control records 2 stay, 1 goes."""
    assert check_group(MAPPED, PIECES, 1, measured_only=False) is None
    assert check_group(MAPPED, PIECES, 1, measured_only=True) is None
    assert check_group([], [rewritten()], 0, measured_only=False) is None


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(
    "change",
    [
        lambda by: (MAPPED, [PIECES[0]._replace(records_kept=1 + by), PIECES[1]]),
        lambda by: (MAPPED, [PIECES[0], PIECES[1]._replace(dropped=1 + by)]),
        lambda by: ([MAPPED[0]._replace(survivors=3 + by), MAPPED[1]], PIECES),
    ],
)
def test_a_count_that_is_off_by_one(
    change: Callable[[int], tuple[list[Part], list[Rewritten]]], by: int
) -> None:
    for measured_only in (False, True):
        problem = check_group(*change(by), 1, measured_only)
        assert problem is not None and "records that were to stay" in problem


@pytest.mark.parametrize("dropped", [0, 2])
def test_a_control_record_that_is_missing_or_too_many(dropped: int) -> None:
    for measured_only in (False, True):
        problem = check_group(MAPPED, PIECES, dropped, measured_only)
        were = 3 - dropped
        assert problem == f"control records that were to stay: {were}; in the cleaned segments: 2"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("field", ["kept_fingerprints", "dropped_fingerprints"])
def test_another_record_than_the_one_that_was_to_stay(number: int, field: str) -> None:
    pieces = list(PIECES)
    pieces[number] = pieces[number]._replace(**{field: getattr(pieces[number], field) ^ 1})
    problem = check_group(MAPPED, pieces, 1, measured_only=False)
    assert problem is not None and "other records" in problem
    assert check_group(MAPPED, pieces, 1, measured_only=True) is None


def test_a_verdict_that_is_lost_or_double() -> None:
    """A lost one that dropped nothing but what is superseded changes no sum."""
    verdict = Verdict(0, 0, "v", 0, 2, 2, 1, 3)
    assert check_verdicts(MAPPED, [verdict]) is None
    assert check_verdicts([], []) is None
    for verdicts in ([], [verdict] * 2, [verdict._replace(hash_partition=1)]):
        problem = check_verdicts(MAPPED, verdicts)
        assert problem == "not every one of 1 hash partitions was resolved exactly once"


def test_a_group_that_is_lost_though_it_keeps_no_record() -> None:
    pieces = [rewritten(group=0), rewritten(group=0, number=1)]
    assert check_round(2, [], pieces) == "segment group 1 was not rewritten"
    assert check_round(2, [], [*pieces, rewritten(group=1)]) is None


def test_what_was_resolved_and_is_not_done() -> None:
    """Two verdicts: 2 superseded and 1 expired, 1 superseded; the pieces dropped 2, 1 and 1."""
    verdicts = [Verdict(0, 0, "v", 0, 2, 2, 1, 2**64 - 3), Verdict(0, 1, "v", 9, 2, 1, 0, 5)]
    pieces = [*PIECES, rewritten(group=1, dropped=1, dropped_fingerprints=5)]
    assert check_round(2, verdicts, pieces) is None
    for wrong in (
        [*PIECES, pieces[2]._replace(dropped=0)],
        [*PIECES, pieces[2]._replace(dropped_fingerprints=4)],
    ):
        assert "records that were to go: 4" in (check_round(2, verdicts, wrong) or "")


__all__ = ["compactor"]  # a fixture

REPLICATED = "--assume-fully-replicated"  # these logs have no high watermark
ALL_KINDS = ("superseded in a part", "superseded over parts", "expired", "aborted", "markers")


@pytest.mark.parametrize(
    ("null_keys", "others", "is_spared"),
    [
        (0, 0, False),
        (1, 0, True),
        (1, 1, False),  # half of them
        (2, 1, True),
        (500, 499, True),
        (500, 500, False),
    ],
)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_more_than_half_of_what_goes(
    null_keys: int, others: int, is_spared: bool, kind: str
) -> None:
    """Whatever the others go for; a record that another part may still supersede is none yet."""
    of_kind = {name: others if name == kind else 0 for name in ALL_KINDS}
    parts = [
        part(null_keys=null_keys, expired=77),
        part(superseded=of_kind["superseded in a part"], aborted=of_kind["aborted"]),
    ]
    superseded, expired = of_kind["superseded over parts"], of_kind["expired"]
    verdicts = [Verdict(0, 0, "v", 0, 0, superseded, expired, 0)]
    reason = check_null_keys(parts, verdicts, of_kind["markers"])
    assert (reason is not None) is is_spared
    if reason is not None:
        told = f"records without a key: {null_keys} of the {null_keys + others} that would go"
        assert reason.startswith(told) and "--drop-null-keys" in reason


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """events-0, of whose six records below the active segment four have no key, and fine-0."""
    root = tmp_path / "logs"
    make_partition(
        root, {0: [keyed(0, "..a")], 3: [keyed(3, "..a")], 6: [keyed(6, "b")]}, "events-0"
    )
    make_partition(root, {0: [keyed(0, ".aa")], 3: [keyed(3, "a")], 4: [keyed(4, "b")]}, "fine-0")
    return root


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--on-corrupt", "fail")])
def test_such_a_log_is_left_as_it_is_and_the_others_go_on(
    log_dir: Path, compactor: Compactor, words: tuple[str, ...]
) -> None:
    """Five of its records would go: one is superseded."""
    before = files_of(log_dir / "events-0")
    ended = compactor("run", log_dir, REPLICATED, *words)
    assert (ended.code, ended.log("events")["status"]) == (4, "set-aside")
    assert ended.log("events")["reason"] == (
        f"{log_dir}/events-0: records without a key: 4 of the 5 that would go. A broker accepts no "
        "such record in a compacted topic, so this may not be one. Nothing was changed; "
        "--drop-null-keys cleans it anyway"
    )
    assert ended.log("fine")["status"] == ("would-clean" if words == ("--dry-run",) else "cleaned")
    assert ended.log("fine")["records"]["dropped"]["null_key"] == 1
    assert files_of(log_dir / "events-0") == before
    assert not (log_dir / SET_ASIDE).exists()


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_retention_waits_for_the_cleaning_and_the_run_says_so(
    log_dir: Path, compactor: Compactor, policy: str, words: tuple[str, ...]
) -> None:
    """Every record is of 1970. Kafka drops what has no key, and then retention takes the rest."""
    before = files_of(log_dir / "events-0")
    settings = {"cleanup.policy": policy, "retention.ms": "1000"}
    configs = log_dir.parent / "topics.json"
    configs.write_text(json.dumps({"events": settings, "fine": settings}))
    ended = compactor("run", log_dir, REPLICATED, "--topic-configs", configs, *words)
    log = ended.log("events")
    waits = ["retention deletes no segment of it before it has been cleaned"]
    assert log["status"] == "set-aside"
    assert log["notes"] == (waits if policy == "compact,delete" else [])
    assert files_of(log_dir / "events-0") == before
    fine = ended.log("fine")["retention"]["time"]["segments"]
    assert (fine > 0) is (policy == "compact,delete")


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_asked_for_it_is_cleaned(
    log_dir: Path, compactor: Compactor, words: tuple[str, ...]
) -> None:
    """Also after a run that has set it aside: that is not remembered, and wants no --retry."""
    compactor("run", log_dir, REPLICATED)
    log = compactor("run", log_dir, REPLICATED, "--drop-null-keys", *words).log("events")
    assert log["status"] == ("would-clean" if words else "cleaned")
    assert (log["records"]["dropped"]["null_key"], log["records"]["kept"]) == (4, 1)
