"""A loading log splits a segment with offsets too far apart, and keeps what is known of it: C-16.4.

Kafka leaves the `.txnindex` of such a segment behind, and its recovery makes it anew only after an
unclean shutdown.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from storage.file_names import INDEX, TXN_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats import txn_index
from storage.formats.txn_index import AbortedTxn
from tests.engine.replay.replayed import replayed
from tests.engine.rules.case import Line
from tests.engine.rules.steps import AS_FOLLOWER, CLOSE, OPEN, damage, in_txn, marker, opened

FAR = 2**31 + 7
JOIN = damage("join", segment=0)
NO_INDEX = damage("delete", segment=0, suffix=INDEX)
NO_TXN_INDEX = damage("delete", segment=0, suffix=TXN_INDEX)
# of two producers: an aborted transaction that ends in the first new segment, one that ends in the
# second, and one that is open from the first to the second
BATCHES = (
    in_txn(0, pid=1),  # offset 0
    marker(commit=False, pid=1),  # 1
    in_txn(0, pid=2),  # 2
    in_txn(1, pid=1, base_offset=FAR, **AS_FOLLOWER),
    marker(commit=False, pid=1),  # FAR + 1
    marker(commit=False, pid=2),  # FAR + 2
)
NEAR_ABORTED = [AbortedTxn(1, 0, 1, 2)]
FAR_ABORTED = [AbortedTxn(1, FAR, FAR + 1, 2), AbortedTxn(2, 2, FAR + 2, FAR + 3)]


def kept(partition: Path, base_offset: int) -> Sequence[AbortedTxn]:
    return txn_index.read(str(partition / file_name(base_offset, TXN_INDEX)))


@pytest.mark.parametrize(
    ("harm", "start"),
    [
        ([NO_INDEX], OPEN),
        ([NO_INDEX, NO_TXN_INDEX], OPEN),
        ([NO_INDEX], opened(clean=False, recovery_point=0)),
        ([], opened(clean=False, recovery_point=0)),
        ([], opened(clean=False, recovery_point=FAR + 3)),
    ],
    ids=["no index", "no index of transactions either", "unclean, no index", "unclean", "flushed"],
)
def test_each_new_segment_has_the_transactions_whose_markers_it_has(
    harm: Sequence[Line], start: Line, tmp_path: Path
) -> None:
    told = replayed(LOCAL, str(tmp_path), [OPEN, *BATCHES, CLOSE, JOIN, *harm, start])
    assert "error" not in told[-1], told[-1]
    assert [each["base_offset"] for each in told[-1]["state"]["segments"]] == [0, FAR]
    (partition,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert kept(partition, 0) == NEAR_ABORTED
    assert kept(partition, FAR) == FAR_ABORTED
