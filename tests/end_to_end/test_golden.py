"""One round of `compactor run` over the golden corpora leaves every log as Kafka's cleaner left it.

Held: names and bytes of `.log`, `.index`, `.timeindex`, `.txnindex`; which producer snapshots stay;
everything else in the directory as it was; the time of modification of `.log` (C-14.3) to the
millisecond; the entry in `cleaner-offset-checkpoint`.
"""

from pathlib import Path

import pytest

from tests.conformance.fleet import Kafkas, Verdict
from tests.conformance.random_logs import run_compactor
from tests.golden import corpora

Outcome = tuple[list[str], dict[str, Verdict]]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    actual: Path = tmp_path_factory.mktemp("golden") / "log-dir"
    problems, verdicts = corpora.extracted().check(run_compactor, actual)
    return problems, {verdict.partition: verdict for verdict in verdicts}


def test_the_log_directory_itself_is_as_it_was(outcome: Outcome) -> None:
    assert outcome[0] == []


@pytest.mark.parametrize("partition", corpora.partitions())
def test_a_log_is_left_as_kafka_leaves_it(outcome: Outcome, partition: str) -> None:
    assert list(outcome[1][partition].problems) == []


def test_a_log_that_kafka_fails_on_is_cleaned(outcome: Outcome) -> None:
    """C-13.7: an index without room. That no latest value is lost is held above."""
    failed = [verdict for verdict in outcome[1].values() if verdict.kafkas is Kafkas.FAILED]
    assert [verdict.partition for verdict in failed if verdict.untouched] == []
    assert failed
