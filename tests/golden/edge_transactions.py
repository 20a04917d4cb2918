"""Edge cases of transactions (C-7, C-8, C-10, C-22.3; runs G and P)."""

from collections.abc import Iterator
from typing import Any, Self

from tests.golden.script import LONG_AGO_MS, Record, Script
from tests.oracle.random_script import END_MS
from tests.support.reference_batch import (
    CONTROL,
    ReferenceBatch,
    ReferenceRecord,
    encode,
)

AB: tuple[Record, ...] = (("a", "1"), ("b", "1"))
CD: tuple[Record, ...] = (("c", "1"), ("d", "1"))
EXPIRATION_MS = 86_400_000
LEADER_CHANGE, UNKNOWN_TYPE = 2, 77


class TxnScript(Script):
    """A script with transactions."""

    def txn(
        self, pid: int, *records: Record, seq: int = 0, epoch: int = 0, codec: str = "none"
    ) -> Self:
        return self.append(*records, pid=pid, epoch=epoch, seq=seq, txn=True, codec=codec)

    def commit(self, pid: int, epoch: int = 0, version: int = 1) -> Self:
        return self._end(pid, epoch, version, commit=True)

    def abort(self, pid: int, epoch: int = 0, version: int = 1) -> Self:
        return self._end(pid, epoch, version, commit=False)

    def _end(self, pid: int, epoch: int, version: int, commit: bool) -> Self:
        fields = {"pid": pid, "epoch": epoch, "commit": commit}
        return self.do("end_txn", **fields, transaction_version=version)

    def round(self, ago_ms: int, key: str = "x") -> Self:
        """An earlier cleaning of all so far; then a batch that makes the log dirty again."""
        return self.roll().append((key, "1")).roll().clean(ago_ms).append((key, "2"))


Case = tuple[str, TxnScript]


def ended() -> Iterator[Case]:
    """E-40 to E-46: what becomes of a transaction, round by round."""
    yield "e40-committed-latest", TxnScript().txn(7, *AB).commit(7).active()
    yield "e40-committed-latest-zstd", TxnScript().txn(7, *AB, codec="zstd").commit(7).active()
    yield "e41-committed-superseded", TxnScript().txn(7, *AB).commit(7).append(*AB).active()
    yield (
        "e41-committed-partly-superseded",
        TxnScript().txn(7, *AB, *CD).commit(7).append(*AB).active(),
    )
    for rounds in range(4):
        for last, ago_ms in (("not-reached", 999), ("reached", 1000)):
            cleanings = [9000, 8000][: max(0, rounds - 1)] + [ago_ms] * (rounds > 0)
            if not rounds and last == "reached":
                continue
            name = f"after-{rounds}-rounds-{last}" if rounds else "first-round"
            committed = _superseded(TxnScript())
            aborted = TxnScript().txn(7, *AB, codec="lz4").abort(7).append(("c", "1"), **NEXT)
            bare = TxnScript().abort(7).append(*AB)
            for cleaning in cleanings:
                for script in (committed, aborted, bare):
                    script.round(cleaning)
            yield f"e42-committed-{name}", committed.active()
            yield f"e44-aborted-{name}", aborted.active()
            yield f"e46-abort-without-data-{name}", bare.active()


NEXT: dict[str, Any] = {"pid": 7, "epoch": 0, "seq": 2}  # a batch that is not transactional


def _superseded(script: TxnScript) -> TxnScript:
    """A committed transaction whose data goes whole: its producer has written since."""
    return script.txn(7, *AB).commit(7).append(*AB, **NEXT)


def undecided() -> Iterator[Case]:
    """E-47, E-51: open transactions, and such as end in the active segment."""
    first = TxnScript().append(*AB).txn(7, *CD).append(*AB).roll().append(*AB)
    yield "e47-open-in-first-segment", first.active()
    second = TxnScript().append(*AB).append(*AB).roll().append(*AB).txn(7, *CD).roll()
    yield "e47-open-in-second-segment", second.append(*AB).active()
    at_base = TxnScript().append(*AB).append(*AB).roll().txn(7, *CD).roll()
    yield "e47-open-at-a-base", at_base.append(*AB).active()
    several = TxnScript().append(*AB).append(*AB).roll().append(*AB).txn(7, *CD).abort(7)
    several.roll().txn(8, *CD).txn(7, *AB, seq=2).roll().abort(7).append(*AB)
    yield "e47-one-open-one-aborted", several.active()
    for name, commit in (("abort", False), ("commit", True)):
        script = TxnScript().append(*AB).txn(7, *AB, *CD).append(("d", "2")).roll()
        script = script.commit(7) if commit else script.abort(7)
        yield f"e51-{name}-in-active-segment", script.append(("e", "1"))
        ours = TxnScript().append(*AB).txn(7, *AB, codec="gzip").txn(7, *CD, seq=2).roll()
        ours.append(("e", "1")).roll()
        ours = ours.commit(7) if commit else ours.abort(7)
        yield f"e51-{name}-in-active-segment-groups", ours.finally_set({"segment.bytes": 79})


def producers() -> Iterator[Case]:
    """E-48, E-49, C-10.4: which batches of producers stay though they are empty."""
    for rounds in range(4):
        last = TxnScript().append(*AB).txn(7, *AB).abort(7)
        bumped = TxnScript().append(*AB).txn(7, *AB).abort(7, epoch=1, version=2)
        committed = TxnScript().txn(7, *AB).commit(7, epoch=1, version=2).append(*AB)
        again = TxnScript().txn(7, *AB).abort(7, epoch=1, version=2)
        again.txn(7, *CD, epoch=1).commit(7, epoch=2, version=2).append(*AB, *CD)
        several = TxnScript().abort(7).txn(8, *AB).abort(7).abort(7, epoch=1).abort(8)
        scripts = {
            "e48-last-batch-aborted": last,
            "e49-abort-bumps-epoch": bumped,
            "e49-commit-bumps-epoch": committed,
            "e49-epoch-goes-on": again,
            "c10.4-several-markers": several,
        }
        for name, script in scripts.items():
            for cleaning in [9000, 8000, 1000][3 - rounds :]:
                script.round(cleaning)
            yield f"{name}-{rounds}", script.active()
    for name, ago_ms in (("not-yet", EXPIRATION_MS - 1), ("now", EXPIRATION_MS)):
        script = TxnScript().at(ago_ms).txn(7, *AB).abort(7).txn(8, *AB).commit(8)
        script.txn(9, *AB).abort(9, epoch=1, version=2).at(LONG_AGO_MS).append(*AB)
        yield f"c23.4-expired-{name}", script.active()


def spanning() -> Iterator[Case]:
    """E-50, E-52, C-8.2: transactions over segments, groups and the log start."""
    for groups, segment_bytes in (("one-group", 1 << 20), ("groups", 79), ("pairs", 420)):
        script = TxnScript().append(*AB).txn(7, *AB).txn(8, *CD).roll()
        script.txn(7, *CD, seq=2, codec="snappy").append(("e", "1")).roll()
        script.txn(8, ("e", "2"), seq=2).abort(7).txn(7, ("f", "1"), seq=4).roll()
        script.commit(8).append(("a", "3")).roll().abort(7).txn(7, *AB, seq=5).commit(7)
        script.finally_set({"segment.bytes": segment_bytes})
        yield f"e50-{groups}", script.active()
        again = TxnScript().txn(7, *AB).roll().txn(7, *CD, seq=2).roll().abort(7)
        again.append(("a", "2")).roll().append(("c", "2")).clean(9000).append(*AB)
        again.finally_set({"segment.bytes": segment_bytes})
        yield f"e50-second-round-{groups}", again.active()
    same = TxnScript().append(*AB, pid=7, epoch=0, seq=0).txn(7, *CD, seq=2).abort(7)
    same.append(*CD, pid=7, epoch=0, seq=4).append(("c", "3"), pid=7, epoch=0, seq=6)
    yield "e52-not-transactional", same.active()
    for offset in range(1, 8):
        script = TxnScript().append(*AB).txn(7, *AB, *CD).abort(7).append(("d", "2")).roll()
        script.txn(8, *AB).abort(8).append(("e", "1")).do("log_start", offset=offset)
        yield f"c8.2-log-start-{offset}", script.active()
    for offset in range(1, 9):
        script = TxnScript({"index.interval.bytes": 0}).txn(7, *AB).txn(8, *CD).abort(7)
        script.txn(7, *CD, seq=2).commit(8).commit(7).append(("d", "2"))
        yield f"c8.2-checkpoint-{offset}", script.active().do("checkpoint", offset=offset)


def maps() -> Iterator[Case]:
    """C-7.10, C-7.11 (run P), C-7.12."""
    for interval in (0, 4096):
        script = TxnScript({"index.interval.bytes": interval}).txn(1, ("x", "1")).abort(1)
        script.append(("k", "old")).txn(1, ("k", "new"), seq=1).commit(1)
        yield f"c7.11-map-start-{interval}", script.active().do("checkpoint", offset=2)
        later = TxnScript({"index.interval.bytes": interval}).append(("k", "0"), ("l", "0"))
        later.txn(1, ("x", "1")).abort(1).append(("k", "1"), ("m", "1"))
        later.txn(1, ("k", "2"), ("l", "2"), seq=1).commit(1).append(("m", None)).roll()
        later.txn(1, ("n", "1"), seq=3).abort(1).txn(1, ("k", "3"), seq=4).commit(1)
        yield f"c7.11-until-the-next-abort-{interval}", later.active().do("checkpoint", offset=4)
    hidden = TxnScript().append(*AB).append(*CD).txn(7, *AB).abort(7)
    yield "c7.10-aborted-hides-nothing", hidden.active()
    null = TxnScript().null_keys_allowed().append(*AB).txn(7, (None, "n"), ("a", None)).abort(7)
    yield "c7.10-null-keys-and-tombstones", null.txn(7, (None, "n"), seq=2).commit(7).active()
    yield "c7.12-markers-alone", TxnScript().abort(7).abort(8).commit(9).active()
    for slots in (1, 2, 3, 4):
        full = TxnScript().txn(7, *AB).abort(7).txn(7, *AB, *CD, seq=2).commit(7).append(*AB)
        yield f"c7.7-partial-map-{slots}", full.roll().clean(500, slots=slots).active()


def control_batches() -> Iterator[Case]:
    """C-8.5, C-8.6: control batches that are no markers."""
    for rounds in range(3):
        script = TxnScript().append(*AB)
        script.append_raw(_control(2, LEADER_CHANGE)).append_raw(_control(3, UNKNOWN_TYPE))
        script.append_raw(_control(4, LEADER_CHANGE, UNKNOWN_TYPE)).append(*AB)
        for cleaning in [9000, 1000][2 - rounds :]:
            script.round(cleaning)
        yield f"c8.5-other-types-{rounds}", script.active()


def _control(offset: int, *types: int) -> bytes:
    ts_ms = END_MS - LONG_AGO_MS
    records = tuple(
        ReferenceRecord(offset + i, ts_ms, b"\0\0" + type_.to_bytes(2, "big"), b"\0\0")
        for i, type_ in enumerate(types)
    )
    last_offset = records[-1].offset
    return encode(ReferenceBatch(offset, last_offset, 0, CONTROL, ts_ms, ts_ms, records=records))


def stories() -> Iterator[Case]:
    """Run G: three producers, round by round; then after their producers have expired."""
    for rounds in range(4):
        script = _run_g(TxnScript())
        for cleaning in [9000, 8000, 1000][3 - rounds :]:
            script.round(cleaning)
        yield f"run-g-{rounds}", script.active()
    for rounds in range(2):
        script = _run_g(TxnScript().at(EXPIRATION_MS)).at(LONG_AGO_MS)
        for cleaning in [9000][:rounds]:
            script.round(cleaning)
        yield f"run-g-expired-{rounds}", script.active()


def _run_g(script: TxnScript) -> TxnScript:
    script.txn(1, *AB).commit(1).txn(2, *CD).abort(2)
    script.txn(3, ("e", "1")).abort(3).txn(3, ("f", "1"), seq=1).commit(3)
    return script.append(*AB, ("f", "2"))
