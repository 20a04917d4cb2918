"""One round of `compactor run` over the golden corpora leaves every log as Kafka's cleaner left it.

Held: names and bytes of `.log`, `.index`, `.timeindex`, `.txnindex`; which producer snapshots stay;
everything else in the directory as it was; the time of modification of `.log` (C-14.3) to the
millisecond; the entry in `cleaner-offset-checkpoint`. The reader's proof holds for both results.
"""

import json
from pathlib import Path

import pytest

from compactor.verification.evidence import CleaningClock
from compactor.verification.verify_against import verify_against
from tests.conformance.fleet import CheckedLog, Kafkas
from tests.conformance.random_logs import run_compactor
from tests.golden import corpora
from tests.support.local_round import NoProgress

pytestmark = pytest.mark.older_codecs
DAY_MS = 86_400_000  # Kafka's default of delete.retention.ms
Outcome = tuple[list[str], dict[str, CheckedLog]]


@pytest.fixture(scope="module")
def actual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ours will be."""
    return tmp_path_factory.mktemp("golden") / "log-dir"


@pytest.fixture(scope="module")
def outcome(actual: Path) -> Outcome:
    problems, checked = corpora.extracted().check(run_compactor, actual)
    return problems, {log.partition: log for log in checked}


def test_the_log_directory_itself_is_as_it_was(outcome: Outcome) -> None:
    assert outcome[0] == []


@pytest.mark.parametrize("partition", corpora.partitions())
def test_a_log_is_left_as_kafka_leaves_it(outcome: Outcome, partition: str) -> None:
    assert list(outcome[1][partition].problems) == []


def test_a_log_that_kafka_fails_on_is_cleaned(outcome: Outcome) -> None:
    """C-13.7: an index without room. That no latest value is lost is held above."""
    failed = [log for log in outcome[1].values() if log.kafkas is Kafkas.FAILED]
    assert [log.partition for log in failed if log.untouched] == []
    assert failed


@pytest.mark.parametrize("whose", ["Kafka's", "ours"])
def test_the_readers_proof_holds(outcome: Outcome, actual: Path, whose: str) -> None:
    assert outcome  # ours is there
    fleet = corpora.extracted()
    after = fleet.after if whose == "Kafka's" else actual
    configs: dict[str, dict[str, str]] = json.loads(fleet.topic_configs.read_text())
    retention = {
        (topic, 0): int(config.get("delete.retention.ms", DAY_MS))
        for topic, config in configs.items()
    }
    clock = CleaningClock(fleet.now_ms, is_exact=True, delete_retention_ms=retention)
    found = verify_against(str(after), str(fleet.before), None, clock, NoProgress())
    assert [str(finding) for finding in found.findings] == []
    assert len(found.partitions) + found.untouched == len(corpora.partitions())
    assert len(found.partitions) > 400
    for partition in found.partitions:
        assert not partition.disputed_batches or partition.name.startswith("e53-")
