"""What travels comes back as it went, through JSON and into a file that only its owner reads."""

import json
import os
import socket
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import pytest

from cleaner_jobs import messages
from cleaner_jobs.messages import (
    ActiveProducer,
    LogPlan,
    LogRules,
    Part,
    PartSection,
    Piece,
    SegmentGroup,
    Source,
    Stretch,
    Verdict,
    WrongMessageError,
    io_limit_file,
    load_task,
    plain,
    save_task,
    value_of,
)
from storage.file_names import Segment
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import VERSIONS
from tests.support.made_values import part, stretch

SOURCE = Source("/logs/t-0/é.log", 2**62, 5, 1_600_000_000_000_000_001, 7, 8, 9)
SECTIONS = (
    PartSection(0, 0, 100, 0, 2**62, 2**62 + 1, 2**64 - 1),
    PartSection(1, 0, 9, 1, 2**62 + 2, 2**62 + 2, 0),
)
PART = part(
    group=1,
    block_at=8,
    block_checksum=2**64 - 1,
    entries=1,
    survivors=1,
    hash_partition_bits=3,
    first_record_offset=2**62,
    log_bytes=109,
    txn_checksum=2**64 - 5,
    survivor_fingerprints=2**64 - 2,
    sections=SECTIONS,
)
VERDICT = Verdict(0, 1, "v", 16, 3, 1, 0, 2**64 - 3)
STRETCH = stretch(SOURCE, 0, 100, group=1, first_dirty_offset=5, aborted_file="/w/é.npy")
PIECE = Piece(0, 1, 0, 2, (PART, PART), 4, (SOURCE, SOURCE), "/w/0-group-1", True, "/w/é.npy")
RULES = LogRules(
    log_id=0,
    path="/logs/t-0",
    kept_end_offset=9,
    delete_retention_ms=1000,
    index_interval_bytes=4096,
    segment_index_bytes=1 << 20,
    active_producers=(ActiveProducer(7, 1, None),),
    verdicts=(VERDICT, VERDICT),
)


def test_values_come_back_as_they_went(tmp_path: Path) -> None:
    path = str(tmp_path / "task.json")
    save_task(path, {"stretch": STRETCH, "part": PART, "piece": PIECE, "rules": RULES})
    task = load_task(path)
    assert value_of(Stretch, task["stretch"]) == STRETCH
    assert value_of(Part, task["part"]) == PART
    assert value_of(LogRules, task["rules"]) == RULES
    piece, rules = value_of(Piece, task["piece"]), value_of(LogRules, task["rules"])
    assert piece == PIECE
    assert isinstance(piece.parts[0].sections[0], PartSection)
    assert isinstance(piece.sources[0], Source)
    assert isinstance(rules.verdicts[0], Verdict)


def with_field(kind: str, value: object) -> list[object]:
    """The stretch as JSON has it, with another value in one field."""
    values: list[object] = json.loads(json.dumps(STRETCH))
    values[Stretch._fields.index(kind)] = value
    return values


@pytest.mark.parametrize(
    "values",
    [
        json.loads(json.dumps(STRETCH))[:-1],
        [*json.loads(json.dumps(STRETCH)), 1],
        json.loads(json.dumps(PART)),
        with_field("log_id", "1"),
        with_field("aborted_file", None),
        with_field("source", json.loads(json.dumps(SOURCE))[:-1]),
        with_field("max_record_bytes", "5"),
        {},
    ],
)
def test_what_is_not_the_fields_of_a_value_is_refused(values: object) -> None:
    with pytest.raises(WrongMessageError):
        value_of(Stretch, values)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Inner:
    sizes: dict[str, int]
    colour: Colour


class Outer(NamedTuple):
    inner: Inner
    maybe: Inner | None
    pairs: tuple[tuple[int, tuple[ActiveProducer, ...]], ...]
    share: float | None


OUTER = Outer(
    inner=Inner(sizes={"a": 1}, colour=Colour.RED),
    maybe=None,
    pairs=((3, (ActiveProducer(7, 1, None),)), (4, ())),
    share=0.1,
)


@pytest.mark.parametrize("maybe", [None, Inner(sizes={}, colour=Colour.RED)])
def test_dataclasses_and_what_is_in_them_come_back_as_they_went(maybe: Inner | None) -> None:
    sent = OUTER._replace(maybe=maybe)
    assert value_of(Outer, json.loads(json.dumps(plain(sent)))) == sent


@pytest.mark.parametrize(
    "values",
    [
        [[{"a": "1"}, "red"], None, [], 0.1],
        [[{"a": 1}, "green"], None, [], 0.1],
        [[{"a": 1}], None, [], 0.1],
        [[{"a": 1}, "red"], [], [], 0.1],
        [[{"a": 1}, "red"], None, [[3]], 0.1],
        [[{"a": 1}, "red"], None, [[3, [], 1]], 0.1],
        [[{"a": 1}, "red"], None, [], "0.1"],
    ],
)
def test_what_is_not_the_fields_of_a_dataclass_is_refused(values: object) -> None:
    with pytest.raises(WrongMessageError):
        value_of(Outer, values)


def test_a_plan_of_a_log_comes_back_as_it_went() -> None:
    segment = Segment(5, 100, 8, None, None, 1, 2)
    plan = LogPlan(
        log_id=0,
        log_dir="/d",
        topic="a-b",
        partition=3,
        path="/d/a-b-3",
        first_dirty_offset=0,
        first_uncleanable_offset=10,
        groups=(SegmentGroup((segment,)),),
        delete_retention_ms=1,
        index_interval_bytes=1,
        segment_index_bytes=1,
        active_producers=(ActiveProducer(7, 1, None),),
        rebuilt_txn_indexes=((5, (AbortedTxn(7, 5, 6, 6),)),),
        kafka=VERSIONS[0],
    )
    assert value_of(LogPlan, json.loads(json.dumps(plain(plan)))) == plan


def test_a_task_is_private_and_never_overwritten(tmp_path: Path) -> None:
    """It holds the key of the hash."""
    path = tmp_path / "task.json"
    old = os.umask(0)
    try:
        save_task(str(path), {})
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        save_task(str(path), {})


def test_a_plan_knows_names_and_sizes() -> None:
    segments = (Segment(5, 100, 8, 12, None, 1, 2), Segment(9, 50, 8, 12, None, 1, 3))
    group = SegmentGroup(segments)
    assert (group.base_offset, group.log_bytes) == (5, 150)
    plan = LogPlan(0, "/d", "a-b", 3, "/d/a-b-3", 0, 10, (group,), 1, 1, 1, ())
    assert plan.name == "a-b-3"


def test_an_io_limit_is_of_one_boot_of_one_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monotonic clock of another has nothing to do with that of this one."""
    boot_id = tmp_path / "boot_id"
    monkeypatch.setattr(messages, "_BOOT_ID_FILE", str(boot_id))
    monkeypatch.setattr(socket, "gethostname", lambda: "a")
    found = []
    for told in ("1f\n", "2f\n"):
        boot_id.write_text(told)
        messages._boot_id.cache_clear()
        found.append(io_limit_file("/w"))
    boot_id.unlink()
    assert io_limit_file("/w") == found[1]  # looked at once
    messages._boot_id.cache_clear()
    found.append(io_limit_file("/w"))
    messages._boot_id.cache_clear()
    assert found == ["/w/io-limit-a-1f", "/w/io-limit-a-2f", "/w/io-limit-a-unknown"]
