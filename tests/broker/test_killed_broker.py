"""A broker that was killed, its logs recovered by us; then it starts and no reader can tell.

1. a broker is written to, idempotent and transactional producers among them, one transaction left
   open, read, and killed; what a disk tears stands at the end of a log;
2. `compactor recover` takes the directory, then `run --recover-first` compacts it;
3. files under the names of ours that a run cut short may leave are put there;
4. the broker starts, without a marker of a clean shutdown, and is read.
"""

import json
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.broker import views, workload
from tests.broker.broker import CLEAN_SHUTDOWN, Broker
from tests.broker.views import ISOLATIONS, Views
from tests.broker.workload import Writer
from tests.support.command_process import compactor

pytestmark = pytest.mark.broker
TOPICS = ("idempotent", "transactions")
TORN = b"\0\0\0\0\0\0\x7f\xff\0\0\1\0torn"
OF_THE_LOG_DIR = ("compactor-set-aside.json", "cleaner-offset-checkpoint.tmp")
STAGED = ("00000000000000000000.log.compactor-0a1b2c3d-7", "00000000000000000000.index.compactor-x")


@dataclass(frozen=True, slots=True)
class Recovered:
    before: Views
    recovered: subprocess.CompletedProcess[str]
    compacted: subprocess.CompletedProcess[str]
    had_marker: bool  # after both
    after: Views
    complaints: list[str]
    staged_left: list[str]
    remembered: bytes  # what we had written down


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("killed")) as broker:
        yield broker


@pytest.fixture(scope="module")
def story(broker: Broker) -> Recovered:
    broker.start()
    writer = Writer(broker.bootstrap, 2000, random.Random(3))
    workload.write_idempotent(writer)
    workload.write_transactions(writer)
    left_open = workload.open_transaction(writer, "txn-left-open")
    before = views.read_all(broker.bootstrap, TOPICS)
    broker.kill()
    assert left_open.values
    partition = broker.data / "idempotent-0"
    with open(max(partition.glob("*.log")), "ab") as log:
        log.write(TORN)
    recovered = compactor("recover", broker.data)
    # its high watermarks may not have been written yet: a broker does so every five seconds
    words = ["--recover-first", "--assume-fully-replicated", "--include", "idempotent"]
    words += ["--set", "cleanup.policy=compact"]
    compacted = compactor("run", broker.data, *words, "--set", "min.cleanable.dirty.ratio=0")
    had_marker = (broker.data / CLEAN_SHUTDOWN).exists()
    for name in STAGED:
        (partition / name).write_bytes(b"staged")
    for name in OF_THE_LOG_DIR:
        (broker.data / name).write_bytes(b"ours")
    broker.start()
    after = views.read_all(broker.bootstrap, TOPICS)
    complaints = broker.complaints()
    staged_left = sorted(path.name for path in partition.glob("*.compactor-*"))
    broker.stop()
    remembered = (broker.data / OF_THE_LOG_DIR[0]).read_bytes()
    return Recovered(
        before, recovered, compacted, had_marker, after, complaints, staged_left, remembered
    )


def test_the_torn_end_is_cut_off_and_reported(story: Recovered) -> None:
    """F-16.1.5; a killed broker's indexes are of full length, and are trimmed."""
    assert story.recovered.returncode == 0, story.recovered
    totals = json.loads(story.recovered.stdout.splitlines()[-1])["totals"]
    assert (totals["truncated"], totals["set_aside"]) == (1, 0)
    assert totals["rebuilt"] >= 2 * totals["partitions"]
    told = " ".join(story.recovered.stdout.split())  # the table breaks lines
    assert f"{len(TORN)} torn bytes" in told, story.recovered.stdout


def test_a_run_that_recovers_first_compacts(story: Recovered) -> None:
    assert story.compacted.returncode == 0, story.compacted
    totals = json.loads(story.compacted.stdout.splitlines()[-1])["totals"]
    assert totals["logs"]["cleaned"] == 2
    assert not story.had_marker


def test_the_broker_says_nothing_of_our_logs(story: Recovered) -> None:
    """It recovers for itself, and finds nothing to cut or to rebuild."""
    said = [line for line in story.complaints if any(f" {t}-" in line for t in TOPICS)]
    said += [line for line in story.complaints if " ERROR " in line or "/data/" in line]
    assert said == []


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_transactions_read_as_before(story: Recovered, isolation: str) -> None:
    """Only recovered: every record, and where each kind of reader stands, open transaction and
    all."""
    assert story.after["transactions", isolation] == story.before["transactions", isolation]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_every_key_has_its_value(story: Recovered, isolation: str) -> None:
    """Recovered, then compacted."""
    before, after = (v["idempotent", isolation] for v in (story.before, story.after))
    assert after.latest() == before.latest()
    assert after.ends == before.ends
    assert len(after.records) < len(before.records)


def test_a_starting_broker_leaves_names_of_ours_alone(story: Recovered) -> None:
    """F-2.5: they end in nothing that it knows. F-1.4: of the log directory it loads directories
    alone."""
    assert story.staged_left == sorted(STAGED)
    assert story.remembered == b"ours"
