"""What a broker makes of index files that are missing when it loads a log, and odd batches
(F-16.1, C-7.11, C-9, C-12.6, C-22.2)."""

from collections.abc import Iterator
from typing import Any

from tests.golden.script import Record, Script, raw_batch, raw_batch_of
from tests.oracle.random_script import END_MS
from tests.support.reference_batch import TRANSACTIONAL, ReferenceRecord

Case = tuple[str, Script]
AB: tuple[Record, ...] = (("a", "1"), ("b", "1"))
ALL_INDEXES = (".index", ".timeindex")
EXPIRATION_MS = 86_400_000


def _without(script: Script, *segments: int, suffixes: tuple[str, ...] = ALL_INDEXES) -> Script:
    for segment in segments:
        script.do("remove", segment=segment, suffixes=list(suffixes))
    return script


def _txn(pid: int, seq: int) -> dict[str, Any]:
    return {"pid": pid, "epoch": 0, "seq": seq, "txn": True}


def _end(script: Script, pid: int, commit: bool) -> Script:
    return script.do("end_txn", pid=pid, epoch=0, commit=commit)


def missing_indexes() -> Iterator[Case]:
    """F-16.1: without .index all indexes are made anew; without .timeindex alone it is empty."""
    for suffixes in ((".index",), ALL_INDEXES, (".timeindex",)):
        kind = "-and-".join(suffix[1:] for suffix in suffixes)
        for index_bytes in (24, 36, 48):  # the sums of C-9.1 where each index counts
            script = Script({"index.interval.bytes": 0})
            for number in range(4):
                script.at(9000 - number).append(*AB).at(5000 - number).append(*AB).roll()
            script.append(*AB).finally_set({"segment.index.bytes": index_bytes})
            yield f"f16.1-no-{kind}-sums-{index_bytes}", _without(script, 4, 8, suffixes=suffixes)
        if ".index" in suffixes:  # the log itself is young, only a time index can say otherwise
            old = Script({"min.compaction.lag.ms": 3000}).at(3000).append(*AB).append(*AB)
            old.at(0).active().mtime(0, 10)
            yield f"f16.1-no-{kind}-min-lag", _without(old, 0, suffixes=suffixes)
    for codec, removed_by_loading in (("none", 176), ("lz4", 204)):
        script = Script({"segment.bytes": 6000, "index.interval.bytes": 300})
        script.fill(
            batches=90, records=4, keys=150, value_bytes=30, tombstones=0.1, advance=7,
            codec=codec, seed=len(codec),
        )  # fmt: skip
        script.finally_set({"segment.bytes": 15_000, "segment.index.bytes": 500})
        script.active().do("remove", segment=removed_by_loading, suffixes=[".snapshot"])
        yield f"f16.1-no-index-filled-{codec}", _without(script, 0)
    for magic in (0, 1):
        old = Script().append(*AB, magic=magic).append(*AB, magic=magic, codec="gzip").roll()
        yield f"f16.1-no-index-v{magic}", _without(old.append(*AB).active(), 0)
    yield from _missing_with_transactions()
    yield from _missing_with_producers()


def _missing_with_transactions() -> Iterator[Case]:
    """The .txnindex of a recovered segment is what its markers tell."""
    for name, suffixes in (
        ("kept", ALL_INDEXES), ("gone", (*ALL_INDEXES, ".txnindex")),
    ):  # fmt: skip
        script = Script().append(("k", "old")).append(*AB, **_txn(1, 0)).append(("c", "1"))
        script.append(("k", "aborted"), **_txn(2, 0))
        _end(_end(script, 1, commit=False), 2, commit=False)
        script.append(("d", "1"), **_txn(3, 0)).roll()
        _end(script.append(("e", "1"), **_txn(1, 2)), 3, commit=True)
        _end(script, 1, commit=False)
        yield f"f16.1-no-txnindex-{name}", _without(script.active(), 0, suffixes=suffixes)
        again = (
            Script().append(("x", "1")).append(*AB, **_txn(1, 0)).append(("y", "1"), **_txn(1, 2))
        )
        _end(again, 1, commit=False).roll().clean(5000).append(("z", "1"))
        yield f"f16.1-no-txnindex-{name}-cleaned", _without(again.active(), 0, suffixes=suffixes)
    hidden = Script().append(*AB).append(("a", "aborted"), **_txn(1, 0))
    _end(hidden, 1, commit=False).append(("b", "2"))  # E-53: with .index nothing is recovered
    yield "e53-txnindex-gone", _without(hidden.active(), 0, suffixes=(".txnindex",))
    for interval in (0, 4096):  # C-7.11: the ABORT marker is read, or it is not
        corner = Script({"index.interval.bytes": interval})
        _end(corner.append(("x", "1"), **_txn(1, 0)), 1, commit=False)
        corner.append(("k", "old"))
        _end(corner.append(("k", "new"), **_txn(1, 1)), 1, commit=True)
        corner.active().do("checkpoint", offset=2)
        yield f"c7.11-no-index-interval-{interval}", _without(corner, 0)


def _missing_with_producers() -> Iterator[Case]:
    """A recovery takes snapshots of its own, and what it replays does not expire (C-23.4)."""
    long_ago = [EXPIRATION_MS] * 2
    for segment in (0, 2, 4, 6):
        script = Script().append(*AB, ago=long_ago, pid=7, epoch=0, seq=0).roll()
        script.append(*AB, ago=long_ago, pid=8, epoch=0, seq=0).roll()
        script.append(*AB, ago=long_ago, pid=9, epoch=0, seq=0).roll().append(*AB)
        yield f"c23.4-expired-no-index-{segment}", _without(script.active(), segment)


def odd_shapes() -> Iterator[Case]:
    """E-30, C-12.6, F-5.2: empty transactional batches, batches over the limit, odd timestamps."""
    for commit in (False, True):
        script = Script().append(("a", "1"))
        empty = raw_batch_of(
            1, [], last_offset=2, attributes=TRANSACTIONAL, max_timestamp=END_MS - 5,
            producer_id=7, producer_epoch=0, base_sequence=0,
        )  # fmt: skip
        script.append_raw(empty)
        _end(script, 7, commit=commit).append(("c", "1"), ("d", "1"), pid=7, epoch=0, seq=2)
        yield f"e30-empty-transactional-{'commit' if commit else 'abort'}", script.active()
    large = Script().fill(batches=3, records=60, keys=40, value_bytes=300, codec="none", seed=3)
    yield "c12.6-over-max-message-bytes", large.active().finally_set({"max.message.bytes": 500})
    for name, key in (("copied", "z"), ("rebuilt", "a")):
        for timestamp in (-1, 0):
            records = [ReferenceRecord(i, timestamp, k, b"1") for i, k in enumerate((b"a", b"b"))]
            script = Script().append_raw(raw_batch_of(0, records)).append((key, "9"))
            yield f"f5.2-timestamp-{timestamp}-{name}", script.active()
    negative = [ReferenceRecord(i, -5, k, b"1") for i, k in enumerate((b"a", b"b"))]
    script = Script().append_raw(raw_batch_of(0, negative)).append(("z", "9"))
    yield "f5.2-negative-timestamp-copied", script.active()
    mixed = raw_batch(0, [(b"a", b"1"), (b"b", b"2")], max_timestamp=-1)
    yield "f5.2-max-timestamp-missing", Script().append_raw(mixed).append(("b", "9")).active()
