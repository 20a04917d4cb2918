"""What people type by mistake: each gets an answer that says what was meant, or what to do next."""

from pathlib import Path

import pytest

from storage.formats import meta_properties
from storage.formats.meta_properties import MetaProperties
from tests.compactor.plan_logs import Shape, build
from tests.support.local_command import run_command

LEAKED = (
    "Value error",
    "Input should",
    "Possible options",
    "backend",
    "Traceback",
    "<bool>",
    "internal error",
    "None",
)

# words, with {data} for a log directory that has logs orders-0 and customers-0; what is answered
MISTAKES: list[tuple[str, str]] = [
    ("pln {data}", "did you mean plan"),
    ("help", "See: compactor --help"),
    ("plan", "LOG_DIR is missing: the broker's log directory, as log.dirs"),
    ("run", "LOG_DIR is missing: the broker's log directory, as log.dirs"),
    ("plan {data} --max-minutes soon", "expected a number."),
    ("log", "a command is missing"),
    ("log rol {data} orders-0", "did you mean roll?"),
    ("log offsets {data}", "TOPIC-PARTITION is missing: the log, like orders-0"),
    ("undo", "RUN_DIR is missing: the run's own directory"),
    ("dump", "PATH is missing"),
    ("plan {root}/lib", "did you mean {data}?"),
    ("plan {root}", "did you mean {data}?"),
    ("plan {root}/lib/dtaa", "No such file or directory; did you mean {data}?"),
    ("plan {data}/orders-0", "give the log directory, {data}"),
    ("plan {data}/orders-0/00000000000000000000.log", "Not a directory; did you mean {data}?"),
    ("plan ''", "is empty; is a variable of the shell not set?"),
    ("plan {data} {data}", "given twice"),
    ("plan /etc", "not a log directory"),
    ("plan s3://bucket/kafka", "copy them to a disk first"),
    ("plan {data} --inclde x", "did you mean --engine or --exclude or --include?"),
    ("plan {data} --engine local", "--engine: only with --sample, which has tasks"),
    ("verify {data} --master local[2]", "--master: only with --against, which has tasks"),
    ("verify {data} --against {root} --engine local --master local[2]", "not with local processes"),
    ("inspect {data} --engine local --master local[2]", "not with local processes"),
    ("plan {data} --sample --engine local --master local[2]", "not with local processes"),
    ("run {data} --dryrun", "did you mean --dry-run?"),
    ("run {data} --topic-config x", "did you mean --config or --topic-configs"),
    ("plan {data} --format yaml", "'yaml' is not one of 'table', 'json'"),
    ("run {data} --wait -1", "expected 0 or more"),
    ("run {data} --wait many", "expected a whole number"),
    ("run {data} --keep-for 7", "like 7d"),
    ("run {data} --master lokal", "expected local[N]"),
    ("run {data} --report x.txt", "expected .json"),
    ("plan {data} --as-of yesterday", "like 2026-11-20T12:00:00Z"),
    ("plan {data} --set foo", "expected NAME=VALUE"),
    ("plan {data} --set segment.byte=1", "did you mean segment.bytes?"),
    ("plan {data} --set min.cleanable.dirty.ratio=2", "expected a number from 0 to 1"),
    ("run {data} --set cleanup.policy=compact", "say which with --include"),
    ("plan {data} --topic-configs {root}/topcis.json", "did you mean {root}/topics.json?"),
    ("plan {data} --include order", "matches only a part of orders"),
    ("plan {data} --include '('", "is not a regular expression"),
    ("plan {data} --metadata {root}/nope", "there is no such directory"),
    ("explain {data} order-0", "did you mean orders-0?"),
    ("explain {data} orders", "expected TOPIC-PARTITION, like orders-0"),
    ("explain {data} orders-7", "did you mean orders-0"),
    ("explain orders-0", "LOG_DIR is missing"),
    ("explain {data}", "TOPIC-PARTITION is missing: the log, like orders-0"),
    ("verify", "LOG_DIR is missing: the broker's log directory"),
    ("configs", "LOG_DIR is missing: the broker's log directory"),
    ("report", "FILE is missing: a report"),
    ("log move {data} orders-0", "TO_DIR is missing: the log directory of this broker"),
    ("log move {data} orders-0 {data}", "TO_DIR {data}: is LOG_DIR itself"),
    ("inspect {data} orders", "expected TOPIC-PARTITION, like orders-0"),
    ("plan {data} --kafka 9.9", "--kafka 9.9: expected one of 4.1, "),
    ("run {data} --output {data}/x", "{data}/x: is {data} itself, or one of the two lies in"),
    ("run {data} --plan {root}/x", "the saved plan says that itself; leave out LOG_DIR"),
    ("verify {data} order-0", "did you mean orders-0?"),
    ("dump {data} orders-0 customers-0", "too many words: customers-0"),
    ("dump {data} order-0", "did you mean {data}/orders-0?"),
    ("log offsets {data} order-0", "did you mean {data}/orders-0?"),
    ("configs {data} ordres", "did you mean orders?"),
    ("undo {root}/kept", "did you mean {root}/kept/run-1?"),
    ("undo {root}/kpet", "did you mean {root}/kept?"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    data = tmp_path / "lib" / "data"
    build(data, Shape("orders"), Shape("customers"))
    meta_properties.write(str(data), MetaProperties(1, "c", 1, None))
    (tmp_path / "topics.json").write_text("{}")
    (tmp_path / "kept" / "run-1").mkdir(parents=True)
    (tmp_path / "kept" / "run-1" / "run.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(("words", "answer"), MISTAKES)
def test_a_mistake_is_answered(root: Path, words: str, answer: str) -> None:
    names = {"root": root, "data": root / "lib" / "data"}
    given = ["" if word == "''" else word.strip("'") for word in words.format(**names).split()]
    ended = run_command(*given)
    assert ended.code in (2, 3)
    assert answer.format(**names) in ended.error
    assert "Nothing was changed" in ended.error
    assert not [word for word in LEAKED if word in ended.error]
