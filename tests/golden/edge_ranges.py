"""Edge cases of producers, ranges, groups, files and indexes (C-4, C-5, C-7, C-9, C-10,
C-13 to C-15, C-22.2, C-22.4)."""

from collections.abc import Iterator
from typing import Any

from tests.golden.script import LONG_AGO_MS, Record, Script
from tests.oracle.random_script import END_MS, Operation

Case = tuple[str, Script]
AB: tuple[Record, ...] = (("a", "1"), ("b", "1"))
EXPIRATION_MS = 86_400_000
TWO_GIB = 2147483648


def _by(pid: int, seq: int, epoch: int = 0) -> dict[str, Any]:
    return {"pid": pid, "epoch": epoch, "seq": seq}


def producers() -> Iterator[Case]:
    """C-10.4, C-10.5, C-11.9, C-23.4; E-27 to E-29."""
    confirmed = Script().null_keys_allowed()  # run C
    confirmed.append(*AB, codec="gzip", leader_epoch=3, **_by(7, 0))
    confirmed.append(*AB, codec="zstd", leader_epoch=3, **_by(7, 2)).append(*AB)
    yield "e27-last-of-producer", confirmed.append((None, "x"), (None, "y")).active()
    again = Script().append(*AB, **_by(7, 0)).append(*AB).roll().clean(5000).append(("c", "1"))
    yield "e27-empty-batch-second-round", again.active()
    newer = Script().append(*AB, **_by(7, 0)).append(*AB).append(("c", "1"), **_by(7, 2))
    yield "e28-newer-batch", newer.active()
    active = Script().append(*AB, **_by(7, 0)).append(*AB)
    yield "e28-newer-batch-in-active-segment", active.active(("c", "1"), **_by(7, 2))
    for name, age_ms in (("e27-not-yet-expired", 1), ("e28-expired", 0)):
        ago = [EXPIRATION_MS - age_ms] * 2
        script = Script().append(*AB, ago=ago, **_by(7, 0)).append(*AB)
        yield name, script.active()
    replaced = Script().append(*AB, **_by(7, 0)).append(*AB).roll().clean(5000)
    yield "e29-no-longer-last", replaced.append(("c", "1"), **_by(7, 2)).active()
    bumped = Script().append(*AB, **_by(7, 0)).append(*AB, **_by(7, 0, epoch=1)).append(*AB)
    yield "c10.4-epoch-bumped", bumped.active()
    many = Script()
    for number in range(6):
        many.append(*AB, **_by(10 + number % 3, 2 * (number // 3)))
    yield "c10.4-several-producers", many.active()
    part = Script().append(*AB, ("c", "1"), **_by(7, 0)).append(*AB, **_by(9_000_000_000, 0))
    yield "c10.4-partly-kept", part.append(("a", "2"), ("a", "3")).active()
    merged = Script().append(*AB, **_by(7, 0)).roll().append(*AB, **_by(8, 0)).roll()
    yield "c10.4-across-segments", merged.append(*AB).active()
    null = Script().null_keys_allowed().append(("a", "1")).roll().append((None, "x"))
    yield "c10.5-last-batch-alone-in-segment", null.active()
    moved = Script().null_keys_allowed().append(("a", "1")).append((None, "x")).roll()
    moved.set({"cleanup.policy": "compact"}).clean(5000).append(("b", "1"))
    yield "c10.5-protection-moves-on", moved.active()
    wraps = Script().append(*AB, **_by(7, 2147483646)).append(*AB, **_by(7, 0))
    yield "c10.4-sequence-wraps", wraps.append(*AB).active()


def partial_maps() -> Iterator[Case]:
    """C-7.7, C-7.8, E-2, E-5: earlier rounds whose map was full leave the checkpoint anywhere."""
    for slots in (2, 3, 4, 5):
        script = Script().null_keys_allowed()
        script.append(("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3"))
        script.append((None, "x"), ("a", "4")).append(("d", "1"), ("b", None)).roll()
        script.append(("c", "2"), ("e", "1")).roll().set({"cleanup.policy": "compact"})
        yield f"c7.8-partial-map-{slots}", script.clean(500, slots=slots).active()


def ranges() -> Iterator[Case]:
    """C-4, C-5; E-60 to E-67."""
    yield "e60-only-the-active-segment", Script().append(*AB).append(*AB)
    script = Script().append(*AB).active()
    yield "e61-nothing-dirty", script.do("checkpoint", offset=2)
    due = Script({"max.compaction.lag.ms": 1}).append(*AB).active()
    yield "e61-nothing-dirty-though-overdue", due.do("checkpoint", offset=2)
    for interval in (0, 4096):
        middle = Script({"index.interval.bytes": interval})
        for number in range(8):
            middle.append(("a", str(number)), ("b", str(number)))
        yield f"e62-mid-segment-{interval}", middle.active().do("checkpoint", offset=7)
    for name, offset in (("e63-beyond-the-end", 99), ("c4.1-at-the-end", 6), ("c4.1-zero", 0)):
        script = Script().append(*AB).roll().append(*AB).active(*AB)
        yield name, script.do("checkpoint", offset=offset)
    for name, offset in (("beyond-the-end", 99), ("below-log-start", 0)):
        script = Script({"min.cleanable.dirty.ratio": 1.0}).append(*AB).roll().append(*AB).active()
        script.do("log_start", offset=1).do("checkpoint", offset=offset)
        yield f"c4.2-repaired-though-not-taken-{name}", script
    below = Script().append(*AB).roll().append(*AB).roll().clean(5000).append(*AB).active()
    yield "c4.1-below-log-start", below.do("log_start", offset=3).do("checkpoint", offset=1)
    for offset in (0, 1, 2, 3, 4, 5):
        script = Script().append(*AB).roll().append(*AB).active()
        yield f"e66-high-watermark-{offset}", script.do("high_watermark", offset=offset)
    gap = Script().append(*AB).append(*AB).roll().append(("c", "1"), offsets=[50])
    yield "e67-gap-between-segments", gap.append(("d", "1"), offsets=[60]).active()
    ending = Script().null_keys_allowed().append(*AB).append((None, "x"))
    ending.set({"segment.bytes": 150}).append(("d", "1"), offsets=[70])  # rolls to base 70
    yield "e67-gap-before-the-bound", ending.finally_set({"segment.bytes": 1 << 20})
    policy = Script({"cleanup.policy": "delete"}).append(*AB).append(*AB).active()
    yield "c5.1-policy-delete", policy.finally_set({"cleanup.policy": "delete"})
    both = Script({"cleanup.policy": "compact,delete"}).append(*AB).append(*AB).active()
    yield "c5.1-policy-both", both
    yield "another-partition", Script(partition=12).append(*AB).append(*AB).active()


def lags_and_ratios() -> Iterator[Case]:
    """C-4.4, C-4.7, C-5.2, C-5.5; E-64, E-65: each at the limit and one beyond it."""
    for name, ago_ms in (("c4.4-min-lag-over", 3000), ("e64-min-lag-not-over", 2999)):
        script = Script({"min.compaction.lag.ms": 3000}).at(ago_ms).append(*AB)
        yield name, script.append(*AB).at(0).active()
        later = Script({"min.compaction.lag.ms": 3000}).append(*AB).append(*AB).roll()
        yield f"{name}-second", later.at(ago_ms).append(*AB).at(0).active()
        untimed: list[Operation] = [{"k": key, "v": "1", "ts": -1} for key in "aba"]
        mtime = Script({"min.compaction.lag.ms": 3000}).append_lines(untimed).active()
        yield f"{name.replace('e64', 'e65')}-by-mtime", mtime.mtime(0, ago_ms)
    for name, ago_ms in (("over", 4001), ("not-over", 4000)):
        settings: dict[str, object] = {"max.compaction.lag.ms": 4000}
        script = Script(settings | {"min.cleanable.dirty.ratio": 1.0}).at(ago_ms).append(*AB)
        yield f"c4.7-max-lag-{name}", script.append(*AB).at(0).active()
    for ratio in (0.49, 0.5, 0.51):
        half = Script({"min.cleanable.dirty.ratio": ratio}).append(("a", "1")).roll()
        half.append(("a", "2")).active().do("checkpoint", offset=1)
        yield f"c5.5-ratio-{ratio}", half
    for ratio in (0.59, 0.6):  # both segments are dirty, the first and larger one is also clean
        twice = Script({"min.cleanable.dirty.ratio": ratio}).append(*AB).append(*AB).roll()
        twice.append(*AB).active().do("checkpoint", offset=1)
        yield f"c5.2-straddling-segment-counts-twice-{ratio}", twice


def groups() -> Iterator[Case]:
    """C-9, C-14.3, C-15.2; E-68, E-69. A batch of one such record has 70 bytes."""
    for segment_bytes in (490, 489, 349):
        script = Script()
        for batches in (3, 2, 2):
            for number in range(batches):
                script.append((str(number), "v"))
            script.roll()
        script.append(("x", "active"))
        yield f"c9.6-sums-{segment_bytes}", script.finally_set({"segment.bytes": segment_bytes})
        internal = {"internal.segment.bytes": segment_bytes, "segment.bytes": 1 << 20}
        inner = Script()
        for _ in range(4):
            inner.append(("a", "v")).append(("b", "v")).roll()
        yield f"c20.2-internal-{segment_bytes}", inner.append(*AB).finally_set(dict(internal))
    for index_bytes in (12, 23, 24, 36, 48, 1200):
        script = Script({"index.interval.bytes": 0})
        for number in range(4):
            script.at(9000 - number).append(*AB).at(5000 - number).append(*AB).roll()
        script.append(*AB).finally_set({"segment.index.bytes": index_bytes})
        yield f"c9.1-index-sums-{index_bytes}", script
    full = Script({"index.interval.bytes": 0})
    for segment, batches in enumerate((3, 2, 2)):
        for number in range(batches):
            full.at(9000 - 10 * segment - number).append((f"k{segment}{number}", "v"))
        full.roll()
    yield "c13.7-index-full", full.append(*AB).finally_set({"segment.index.bytes": 60})
    far = Script().append(*AB).append(("c", "1"), offsets=[12]).roll().append(("c", "2"))
    far.append(("d", "1"), offsets=[TWO_GIB + 3]).append(("e", "1"), offsets=[TWO_GIB + 4])
    yield "c9.7-31-bits", far.append(("a", "2"), offsets=[TWO_GIB + 52]).active()
    yield "c9.7-empty-segment-joins", _empty_segment_before_far_one()
    close = Script().append(*AB).roll().append(("c", "1"), offsets=[2])
    close.append(("a", "1"), offsets=[TWO_GIB - 2]).active()
    yield "c9.7-just-within-31-bits", close
    high = Script().append(("a", "1"), offsets=[7_000_000_000_000])
    yield "large-offsets", high.append(*AB).append(*AB).active()
    gone = Script().append(*AB).roll().append(*AB).roll().append(*AB)
    gone.finally_set({"segment.bytes": 200})
    yield "e68-groups-removed", gone.active()
    yield "e69-empty-segments-merged", _with_empty_segments()
    yield "c14.3-time-of-the-last-source", _last_source_is_older()


def _with_empty_segments() -> Script:
    script = Script().append(*AB).roll().append(*AB).roll().append(("c", "1"), *AB).roll()
    script.set({"segment.bytes": 100}).clean(5000).set({"segment.bytes": 1 << 20})
    return script.append(*AB).active()


def _empty_segment_before_far_one() -> Script:
    script = (
        Script()
        .append(("c", "1"))
        .roll()
        .append(*AB)
        .append(*AB, offsets=[TWO_GIB + 98, TWO_GIB + 99])
    )
    script.roll().append(("d", "1")).set({"segment.bytes": 75}).clean(5000)
    return script.set({"segment.bytes": 1 << 20}).append(("d", "2")).active()


def _last_source_is_older() -> Script:
    script = Script().append(*AB).roll().append(("c", "1")).roll().append(("d", "1")).active()
    return script.mtime(0, 1000).mtime(2, 900_001).mtime(3, 70_003).mtime(4, 10)


def files() -> Iterator[Case]:
    """C-13.2, C-13.3, C-14.2, C-15.2: indexes over many batches and sources, and snapshots."""
    for interval in (0, 100, 1000, 4096):
        for codec in ("none", "zstd"):
            script = Script({"segment.bytes": 6000, "index.interval.bytes": interval})
            script.fill(
                batches=120, records=4, keys=150, value_bytes=30, tombstones=0.1, advance=7,
                codec=codec, seed=interval,
            )  # fmt: skip
            script.finally_set({"segment.bytes": 15_000})
            yield f"c13.2-interval-{interval}-{codec}", script.active()
    backwards = Script({"index.interval.bytes": 0})
    for number in range(12):
        ago_ms = LONG_AGO_MS - 1000 * (number * 7 % 5)
        backwards.append((f"k{number % 9}", "v"), ("x", "v"), ago=[ago_ms, ago_ms])
    yield "c13.2-timestamps-out-of-order", backwards.active()
    early = Script({"index.interval.bytes": 0})
    early.append_lines([{"k": "c", "v": "1", "ts": -1}]).append(("d", "1"), ago=[END_MS])
    early.append(*AB, ago=[END_MS, END_MS]).append(("a", "2"), ago=[END_MS - 1])
    yield "c13.2-timestamps-from-zero", early.append(("e", "1"), ago=[END_MS]).active()
    snapshots = Script()
    for number in range(6):
        snapshots.append(*AB, **_by(7, 2 * number)).do("snapshot").roll()
    yield "c15.2-snapshots-of-merged-bases", snapshots.append(("c", "1")).active()
    separate = Script().append(*AB).roll().append(*AB).roll().append(*AB).active()
    yield "c15.2-groups-of-one", separate.finally_set({"segment.bytes": 79})
    same = Script().append(*AB).roll().append(("c", "1")).roll().append(("d", "1")).active()
    yield "c6.6-nothing-lost", same.finally_set({"segment.bytes": 79})
