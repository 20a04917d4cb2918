"""A log that would lose most of its records for want of a key is rather no compacted one."""

import json
from pathlib import Path

import pytest

from cleaner_jobs.messages import Verdict
from compactor.cleaning.null_keys import why_keys_are_missed
from compactor.log_dirs.set_aside_memory import SET_ASIDE
from tests.compactor.log_dirs.test_set_aside_memory import Compactor, compactor
from tests.support.made_log import files_of, keyed, make_partition
from tests.support.made_values import part

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
    reason = why_keys_are_missed(parts, verdicts, of_kind["markers"])
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
