"""Damaged log directories under a real broker's start: it does what we say, and nobody advises it.

`python -m tests.broker.start_conditions` draws as many as one likes.
"""

from collections.abc import Iterator

import pytest

from compactor.api import StartOutcome
from storage.formats import checkpoint
from tests.broker.start_campaign import FINE, Campaign, Case, original

pytestmark = pytest.mark.broker
TOGETHER = {
    "none": FINE,
    "epochs: NULs": StartOutcome.DIRECTORY_OFFLINE,
    "epochs: missing": FINE,
    "topic id: missing": StartOutcome.LOG_EMPTIED,
    "topic id: a blank id": StartOutcome.DIRECTORY_OFFLINE,
    "topic id: padded": FINE,
    f"{checkpoint.RECOVERY_POINT}: NULs": StartOutcome.DIRECTORY_OFFLINE,
    f"{checkpoint.REPLICATION}: a count too high": StartOutcome.DIRECTORY_OFFLINE,
    f"{checkpoint.CLEANER_OFFSET}: version 1": StartOutcome.DIRECTORY_OFFLINE,
}
ALONE = {"topic id: empty": StartOutcome.BROKER_ENDS}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    root = tmp_path_factory.mktemp("starts")
    yield Campaign(original(root / "original"), root / "scratch", lambda _: None)


def test_a_broker_does_what_we_say_and_no_command_recommends_a_start_that_harms(
    campaign: Campaign,
) -> None:
    expected = TOGETHER | ALONE
    cases = [
        Case(number, number, () if name == "none" else (name,))
        for number, name in enumerate(expected)
    ]
    verdicts = campaign.run(cases)
    assert [v for v in verdicts if not v.is_right] == []
    assert [v.seen for v in verdicts] == list(expected.values())
    assert campaign.starts == 2
