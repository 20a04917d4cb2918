"""Random scripts for the engine: the same seed gives the same script.

The life of one log of a few kilobytes in many small segments, made so that rules collide: indexes
that are full, reads and truncations at every kind of boundary, producers that repeat, skip and are
fenced, transactions across segments, offsets two billion apart, crashes with damage, all three
rules of retention. Every script weighs the operations differently.
"""

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

Json = dict[str, Any]

START_MS = 1_700_000_000_000
FAR = 2_147_483_648  # one more than an index can tell
CODECS = ["gzip", "snappy", "lz4", "zstd"]
PIDS = [1, 2, 3, 9_000_000_000]


class Options(NamedTuple):
    """What may be in a script."""

    txn: bool = True
    legacy: bool = True
    codecs: bool = True
    recompression: bool = True
    damage: bool = True
    cleans: bool = True
    follower: bool = True
    invalid: bool = True
    hide: bool = True
    ops: int | None = None  # how many lines; None: 40 to 160


class Script:
    def __init__(self, seed: int, options: Options) -> None:
        self.rng = random.Random(seed)
        self.options = options
        self.lines: list[Json] = []
        self.now = START_MS
        self.epoch = 0  # of the leader
        self.end = 0  # about where the log ends
        self.legacy = 0  # appends of old messages that are still to come
        self.sent: dict[int, list[tuple[int, bool]]] = {}  # producer id -> the last batches it sent

    def emit(self, op: str, **fields: Any) -> None:
        self.lines.append({"op": op, **fields})

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one_of(self, *values: Any) -> Any:
        return self.rng.choice(values)

    # ---- birth --------------------------------------------------------------------------------

    def settings(self) -> Json:
        rng = self.rng
        values = {
            "segment.bytes": rng.choice([300, 600, 1_000, 1_000, 3_000, 10_000]),
            "index.interval.bytes": rng.choice([0, 1, 100, 400, 4_096]),
            "segment.index.bytes": rng.choice(
                [12] + [24, 36, 60, 60, 120, 120, 1_200, 1_200, 1_200, 65_536] * 2
            ),
            "cleanup.policy": rng.choice(["delete", "delete", "compact", "compact,delete"]),
            "file.delete.delay.ms": rng.choice([0, 1_000, 60_000]),
        }
        rare: dict[str, list[Any]] = {
            "segment.ms": [100, 2_000],
            "max.message.bytes": [150, 400],
            "message.timestamp.type": ["LogAppendTime"],
            "message.timestamp.before.max.ms": [600, 5_000],
            "message.timestamp.after.max.ms": [0, 100],
            "retention.ms": [-1, 500, 5_000, 5_000],
            "retention.bytes": [0, 500, 2_000, 5_000],
            "flush.messages": [1, 5],
            "delete.retention.ms": [0, 1_000],
            "min.cleanable.dirty.ratio": ["0.0", "0.1", "0.1"],
            "min.compaction.lag.ms": [200],
            "max.compaction.lag.ms": [1_000],
        }
        for name, choices in rare.items():
            if self.chance(0.25):
                values[name] = rng.choice(choices)
        if self.options.recompression and self.options.codecs and self.chance(0.35):
            values["compression.type"] = rng.choice([*CODECS, "uncompressed"])
        if self.chance(0.05):
            values["preallocate"] = "true"
        return {name: str(value) for name, value in values.items()}

    def birth(self) -> None:
        self.emit("clock", ms=self.now)
        self.emit("config", **self.settings())
        if self.chance(0.15):
            self.emit("broker", **{"producer.id.expiration.ms": self.one_of(1_000, 60_000)})
        if self.options.txn and self.chance(0.1):
            self.emit("broker", **{"transaction.partition.verification.enable": True})
        if self.options.legacy and self.chance(0.25):
            self.legacy = self.rng.randint(3, 25)
        self.emit("settings", follow_high_watermark=self.chance(0.75))
        self.emit("open")

    # ---- values -------------------------------------------------------------------------------

    def place(self) -> Any:
        """An offset near something that matters."""
        around = self.one_of(
            "start", "end", "hw", "lso", "recovery", f"segment[{self.rng.randint(-4, 3)}]"
        )
        shift = self.one_of(0, 0, 0, -1, 1, -2, 2, -5)
        if self.chance(0.15):
            return self.rng.randint(0, self.end + 2)
        return around + (f"{shift:+d}" if shift else "")

    def timestamp(self) -> Any:
        odd = self.chance(0.03)
        if odd:
            return self.one_of(-1, 0, self.now + 4_000_000)
        return self.now - self.one_of(0, 0, 0, 1, 1, 40, 700, 5_500, -50)

    def size(self) -> Any:
        return self.one_of(1, 1, 1, 2, 3, 6)

    def records(self, count: int) -> list[Json]:
        out = []
        for _ in range(count):
            key = None if self.chance(0.02) else self.one_of("", *(f"key-{i}" for i in range(8)))
            value = (
                None
                if self.chance(0.15)
                else "v" * self.one_of(0, 1, 5, 40, 90) + str(self.rng.randrange(1000))
            )
            record = {"k": key, "v": value, "ts": self.timestamp()}
            if self.chance(0.1):
                record["h"] = [["h", "x"], ["", None], ["\u00e9\U0001f600", ""]][
                    : self.rng.randint(1, 3)
                ]
            out.append(record)
        return out

    def bare(self, count: int) -> list[Json]:
        """Records without headers: old messages have none."""
        return [
            {name: value for name, value in r.items() if name != "h"} for r in self.records(count)
        ]

    def codec(self, legacy: bool = False) -> Any:
        if legacy and not self.options.recompression:  # most of these are compressed anew
            return {}
        if not self.options.codecs or self.chance(0.6):
            return {}
        codec = self.one_of(*(c for c in CODECS if not (legacy and c == "zstd")))
        return (
            {"codec": codec, "level": self.one_of(1, 5, 9)}
            if codec != "snappy" and self.chance(0.2)
            else {"codec": codec}
        )

    def leader(self) -> Json:
        return {"leader_epoch": self.epoch} if self.epoch else {}

    # ---- appends ------------------------------------------------------------------------------

    def append(self, count: int | None = None, **fields: Any) -> None:
        count = count or self.size()
        self.emit(
            "append", **{"records": self.records(count), **self.codec(), **self.leader(), **fields}
        )
        self.end += count

    def append_plain(self) -> None:
        self.append()

    def append_legacy(self) -> None:
        to = self.one_of(0, 1, 1)
        fields = (
            {"magic": to, "to_magic": to}
            if self.chance(0.8)
            else {"magic": self.one_of(0, 1, 2), "to_magic": to}
        )
        records = (self.records if fields["magic"] == 2 else self.bare)(self.size())
        self.append(
            len(records),
            records=records,
            **{**fields, **(self.codec(legacy=True) or {"codec": "none"})},
        )

    def append_old_client(self) -> None:
        """Messages of an old client, which the log takes as new ones."""
        records = self.bare(self.size())
        self.append(
            len(records),
            records=records,
            magic=self.one_of(0, 1),
            **{"codec": "none", **self.codec(legacy=True)},
        )

    def append_by_producer(self, txn: bool | None = None) -> None:
        pid = self.rng.choice(PIDS)
        txn = (self.options.txn and pid != 3) if txn is None else txn
        count = self.size()
        # where the generator's count and Kafka's agree, a batch can be sent again
        fields = {
            "pid": pid,
            "epoch": self.one_of(
                "current", "current", "current", "current", "current-1", "current+1"
            ),
            "seq": "next",
            **({"txn": True} if txn else {}),
        }
        if fields["epoch"] == "current+1":
            fields["seq"] = self.one_of(0, 0, 0, 3)
        elif self.chance(0.12):
            fields["seq"] = self.one_of("next+1", "next-1", "next+2147483000", 0, 2_147_483_647)
        if txn and self.chance(0.15):
            self.verify(pid)
            fields["guard"] = True
        fields["records"] = self.records(count)
        self.append(count, **fields)
        self.sent.setdefault(pid, []).append((count, txn))

    def append_again(self) -> None:
        """One of the last batches of a producer once more: of the last five it is a duplicate."""
        known = [pid for pid in self.sent if self.sent[pid]]
        if not known:
            self.append_by_producer()
            return
        pid = self.rng.choice(known)
        back = self.one_of(1, 1, 2, 3, 5, 6)
        past = self.sent[pid][-back:]
        count, txn = past[0]
        seq = f"next-{sum(n for n, _ in past)}"
        fields = {"pid": pid, "epoch": "current", "seq": seq, **({"txn": True} if txn else {})}
        self.emit("append", records=self.records(count), **self.leader(), **fields)

    def verify(self, pid: int | None = None) -> None:
        self.emit(
            "verify_txn",
            pid=pid or self.rng.choice(PIDS),
            epoch=self.one_of("current", "current", "current-1"),
            seq=self.one_of("next", "next", 0, 5),
            supports_epoch_bump=self.chance(0.4),
        )

    def end_txn(self) -> None:
        fields = {
            "pid": self.rng.choice(PIDS),
            "epoch": self.one_of("current", "current", "current", "current", "current-1"),
            "commit": self.chance(0.5),
        }
        if self.chance(0.3):
            fields |= {
                "epoch": self.one_of("current+1", "current+1", "current"),
                "transaction_version": 2,
            }
        if self.chance(0.2):
            fields["coordinator_epoch"] = self.one_of(0, 1, 1, 2)
        if self.chance(0.03):
            fields |= self.one_of({"origin": "client"}, {"transaction_version": -1})
        if self.chance(0.1) and self.options.follower:
            fields |= {"as": "follower", "base_offset": "end"}
        self.emit("end_txn", **fields, **self.leader())
        self.end += 1

    def transactions(self) -> None:
        """Some producers at a time, over a few segments, each decided or left open; then reads."""
        pids = self.rng.sample(PIDS, self.one_of(1, 2, 3))
        for _ in range(self.rng.randint(2, 7)):
            count = self.size()
            self.append(
                count,
                pid=self.rng.choice(pids),
                epoch="current",
                seq="next",
                txn=True,
                records=self.records(count),
            )
            if self.chance(0.25):
                self.append_plain()
            if self.chance(0.15):
                self.roll()
        for pid in pids:
            if self.chance(0.85):
                self.emit(
                    "end_txn", pid=pid, epoch="current", commit=self.chance(0.3), **self.leader()
                )
        if self.chance(0.8):
            self.emit(
                "high_watermark", offset=self.one_of("end", "end", "end", "end-1"), how="increment"
            )
        for _ in range(3):
            self.emit(
                "read",
                offset=self.one_of(
                    "start",
                    f"segment[{self.rng.randint(-3, 0)}]",
                    f"segment[{self.rng.randint(-3, 0)}]+1",
                    "lso-3",
                ),
                max_bytes=self.one_of(200, 600, 100_000),
                isolation="committed",
            )
        self.emit(
            "aborted_txns",
            offset=self.one_of("start", "segment[-2]"),
            upper=self.one_of("end", "segment[-1]", "segment[-1]+1"),
        )

    def given(self, base: str) -> Json:
        """A batch with its offsets, as a follower gets it."""
        kind, count = self.rng.random(), self.size()
        if kind < 0.1 and self.options.txn:
            return {
                "marker": self.one_of("commit", "abort"),
                "pid": self.rng.choice(PIDS),
                "epoch": self.one_of("current", "current-1"),
                "base_offset": base,
            }
        if kind < 0.2:
            return {
                "empty": True,
                "base_offset": base,
                "span": self.size(),
                **(
                    {"pid": self.rng.choice(PIDS), "epoch": "current", "seq": "next"}
                    if self.chance(0.5)
                    else {}
                ),
            }
        batch = {"records": self.records(count), "base_offset": base, **self.codec()}
        if self.chance(0.4):
            batch["steps"] = [self.one_of(1, 1, 2, 7) for _ in range(count - 1)]
        if self.chance(0.1):
            batch["span"] = 40
        if self.chance(0.3):
            batch |= {
                "pid": self.rng.choice(PIDS),
                "epoch": self.one_of("current", "current", "current-1"),
                "seq": self.one_of("next", "next", "next+4"),
                **({"txn": True} if self.options.txn and self.chance(0.6) else {}),
            }
        return batch

    def append_as_follower(self) -> None:
        gap = (
            self.one_of(0, 0, 0, 3, 100, -1)
            if self.chance(0.95)
            else self.one_of(FAR - 2, FAR, FAR * 2)
        )
        base = f"end{gap:+d}" if gap else "end"
        self.emit("append", **{"as": "follower", **self.given(base), "leader_epoch": self.epoch})
        self.end += 5

    def append_several_as_follower(self) -> None:
        batches, at = [], 0
        for _ in range(self.rng.randint(2, 4)):
            batch = self.given(f"end{at:+d}")
            batch["batch_epoch"] = self.epoch + self.one_of(0, 0, 0, 0, 1, -1)
            if batch["batch_epoch"] < 0:
                batch["batch_epoch"] = -1
            batches.append(batch)
            at += self.one_of(200, 50, 60) if self.chance(0.9) else self.one_of(-1, FAR - 300, FAR)
        self.emit("append", **{"as": "follower", "batches": batches, "leader_epoch": self.epoch})
        self.end += 100

    def append_legacy_as_follower(self) -> None:
        magic = self.one_of(0, 1)
        records = self.bare(self.size())
        base = "end" if self.chance(0.95) else f"end+{FAR + 5}"
        self.emit(
            "append",
            **{
                "as": "follower",
                "magic": magic,
                "records": records,
                "base_offset": base,
                "leader_epoch": self.epoch,
                **self.codec(legacy=True),
            },
        )

    def append_invalid(self) -> None:
        """What Kafka's validator refuses, each for another reason."""
        one, two = self.records(1), self.records(2)
        patched = {"records": two, "fix_crc": True}
        self.emit(
            "append",
            **self.leader()
            | self.one_of(
                {"records": two, "edit": [[self.rng.randint(17, 200), "7f"]]},  # its checksum
                {**patched, "edit": [[57, "00000007"]]},  # its count
                {**patched, "edit": [[57, "00000000"]]},
                {**patched, "edit": [[23, "00000004"]]},  # the last offset's delta
                {**patched, "edit": [[23, "ffffffff"]]},
                {**patched, "edit": [[self.one_of(62, 63, 66), "ff"]]},  # a record
                {**patched, "edit": [[8, "00000001"]]},  # its length
                {**patched, "edit": [[16, self.one_of("05", "01", "00")]]},  # its magic
                {**patched, "edit": [[22, self.one_of("05", "07", "01")]]},  # its codec
                {"records": two, "cut": self.one_of(1, 10, 70)},
                {"records": one, "base_offset": 5},
                {"batches": [{"records": one}, {"records": two}]},
                {"batches": [{"records": one, "codec": "gzip"}, {"records": two, "codec": "gzip"}]},
                {
                    "batches": [
                        {"records": self.bare(1), "magic": 1},
                        {"records": self.bare(1), "magic": 0},
                    ],
                    "to_magic": 1,
                },
                {"marker": "abort", "pid": 1, "epoch": 0},
                {
                    **patched,
                    "pid": 1,
                    "epoch": 0,
                    "seq": 0,
                    "edit": [[53, "fffffff0"]],
                },  # its sequence
                {"records": one, "pid": 1, "epoch": "current", "seq": "next", "to_magic": 1},
                {
                    "records": one,
                    "pid": 1,
                    "epoch": "current",
                    "seq": "next",
                    "txn": True,
                    "to_magic": 0,
                },
                {"records": one, "log_append_time": True},
                {
                    "records": [
                        {"k": None, "v": "no key", "ts": self.now},
                        {"k": None, "v": "nor this", "ts": self.now},
                    ]
                },
                {
                    "records": [
                        {"k": "old", "v": "x", "ts": 5},
                        {"k": "new", "v": "x", "ts": self.now + 10_000_000},
                    ]
                },
                {
                    "records": [
                        {
                            "k": "big",
                            "v": "x" * self.one_of(200, 500, 4_000, 12_000),
                            "ts": self.now,
                        }
                    ]
                },
                {
                    "records": one,
                    "origin": "raft",
                    "batch_epoch": self.epoch + self.one_of(0, 1),
                    "base_offset": "end",
                },
                {"records": one, "leader_epoch": -1, "as": "follower", "base_offset": "end"},
                {"records": []},
                {"hex": self.one_of("", "00", "ff" * 30, "00" * 61)},
            ),
        )

    # ---- everything else ----------------------------------------------------------------------

    def read(self) -> None:
        for _ in range(self.one_of(1, 1, 3)):
            isolation = self.one_of("log_end", "high_watermark", "committed", "committed")
            size = self.one_of(0, 1, 60, 61, 62, 100, 200, 500, 1_000, 100_000)
            offset = self.one_of(
                self.place(),
                "start",
                f"segment[{self.rng.randint(-4, 0)}]",
                self.rng.randint(0, self.end + 2),
            )
            self.emit(
                "read",
                offset=offset,
                max_bytes=size,
                min_one_message=self.chance(0.7),
                isolation=isolation,
            )
        if self.chance(0.02):
            self.emit("read", offset="start", max_bytes=-1)

    def read_all(self) -> None:
        """From one end to the other, as a consumer does."""
        for n in range(-4, 1):
            self.emit(
                "read",
                offset=f"segment[{n}]",
                max_bytes=self.one_of(150, 400, 100_000),
                isolation=self.one_of("log_end", "committed"),
            )

    def look_up(self) -> None:
        choice = self.rng.random()
        if choice < 0.5:
            self.emit(
                "offset_for_timestamp",
                ts=self.one_of(
                    "earliest",
                    "latest",
                    "max",
                    "max",
                    "earliest_local",
                    "latest_tiered",
                    "earliest_pending_upload",
                    *[
                        self.now
                        - self.one_of(0, 0, 1, 39, 40, 699, 700, 5_500, 10_000, -1, -50, -51)
                    ]
                    * 9,
                ),
            )
        elif choice < 0.65:
            self.emit(
                "epoch_end_offset", epoch=self.epoch + self.one_of(0, 0, -1, -2, 1, -self.epoch - 1)
            )
        elif choice < 0.72:
            self.emit("epoch_for_offset", offset=self.place())
        elif choice < 0.84:
            self.emit("offset_metadata", offset=self.place())
        elif choice < 0.92:
            self.emit("aborted_txns", offset=self.place(), upper=self.place())
        elif choice < 0.97:
            self.emit("offset_snapshot")
        else:
            self.emit("late_txn")

    def roll(self) -> None:
        self.emit("roll")

    def flush(self) -> None:
        self.emit("flush", **self.one_of({}, {"force": True}, {"offset": self.place()}))

    def truncate(self) -> None:
        if self.chance(0.75):
            self.emit("truncate_to", offset=self.place() if self.chance(0.9) else -1)
        else:
            place = self.one_of("end", "end+5", "start", "segment[0]+1", f"end+{FAR}")
            self.emit(
                "truncate_fully",
                offset=place,
                **({"log_start_offset": "start"} if self.chance(0.2) else {}),
            )

    def delete_records(self) -> None:
        self.emit(
            "delete_records",
            offset=self.one_of(
                "hw",
                "hw+1",
                "start+1",
                "start+3",
                "segment[1]",
                "segment[1]+1",
                "segment[1]-1",
                self.place(),
            ),
        )

    def high_watermark(self) -> None:
        self.emit(
            "high_watermark",
            offset=self.one_of("end", "end", "end-1", "end+1", "hw+1", self.place()),
            how=self.one_of("set", "increment", "increment", "follow"),
        )

    def reconfigure(self) -> None:
        settings = self.settings()
        names = self.rng.sample(sorted(settings), min(len(settings), self.rng.randint(1, 3)))
        if self.chance(0.04):
            self.emit(
                "config",
                **self.one_of(
                    {"retention.ms": "x"}, {"segment.index.bytes": "2"}, {"cleanup.policy": "keep"}
                ),
            )
        self.emit("config", **{name: settings[name] for name in names if name != "preallocate"})

    def retention(self) -> None:
        if self.chance(0.5):
            self.emit(
                "config",
                **self.one_of(
                    {"retention.bytes": "800"},
                    {"retention.ms": "900"},
                    {"retention.ms": "0"},
                    {"retention.bytes": "0"},
                    {"cleanup.policy": "delete"},
                ),
            )
        if self.chance(0.5):
            self.emit("high_watermark", offset="end", how="increment")
        self.emit("retention")

    def new_leader(self) -> None:
        self.epoch += self.one_of(1, 1, 3)
        if self.chance(0.6):
            self.emit("assign_epoch", epoch=self.epoch, offset="end")
        elif self.chance(0.3):
            self.emit(
                "assign_epoch",
                epoch=self.one_of(self.epoch - 1, self.epoch, -1),
                offset=self.place(),
            )

    def producers(self) -> None:
        self.emit(self.one_of("snapshot", "snapshot", "expire_producers"))
        if self.chance(0.1):
            self.emit("load_producer_state", offset=self.one_of("end", "end", self.place()))

    def checkpoint(self) -> None:
        self.emit("checkpoint")

    def files(self) -> None:
        self.emit("files")

    def mtime(self) -> None:
        self.emit("mtime", segment=self.rng.randint(0, 3), ms=self.now - self.one_of(0, 500, 6_000))

    def clean(self) -> None:
        self.emit(
            "config",
            **{
                "cleanup.policy": self.one_of("compact", "compact,delete"),
                "min.cleanable.dirty.ratio": "0.0",
            },
        )
        if self.chance(0.5):
            self.emit("roll")
        ranged = {"first_dirty": "start", "uncleanable": "segment[-1]"} if self.chance(0.2) else {}
        self.emit("clean", **ranged, **({"slots": self.one_of(3, 10)} if self.chance(0.2) else {}))
        if self.chance(0.6):
            self.emit("config", **{"cleanup.policy": "delete"})

    def time(self) -> None:
        self.now += (
            self.one_of(1, 50, 300, 1_000, 5_000)
            if self.chance(0.85)
            else self.one_of(60_000, 700_000, 90_000_000)
        )
        self.emit("clock", ms=self.now)

    # ---- death and after ----------------------------------------------------------------------

    def restart(self) -> None:
        clean = self.chance(0.5)
        if self.chance(0.4):
            self.emit("checkpoint")
        self.emit("close" if clean else "crash")
        if self.options.damage and self.chance(0.6):
            for _ in range(self.one_of(1, 1, 1, 2, 3)):
                self.damage()
        if self.chance(0.3):
            self.emit("files")
        fields: Json = {}
        if self.chance(0.25):
            fields["clean"] = not clean
        if self.chance(0.25):
            fields["recovery_point"] = self.rng.choice(
                [0, 0, self.end // 2, self.end, self.end * 2 + 9]
            )
        if self.chance(0.1):
            fields["log_start_offset"] = self.rng.choice(
                [0, self.end // 3, self.end // 2, self.end * 3 + 20]
            )
        if self.chance(0.3):
            fields["high_watermark"] = self.rng.choice(
                [0, self.end // 2, self.end, self.end * 2 + 9]
            )
        self.emit("open", **fields)
        if self.chance(0.8):
            self.emit("high_watermark", offset="end", how="set")

    def lose_directory(self) -> None:
        """The disk fails while the log is open: once an operation meets that, none succeeds."""
        self.emit("hide")
        for what in self.rng.choices(
            [
                self.append_plain,
                self.append_by_producer,
                self.roll,
                self.read,
                self.new_leader,
                self.truncate,
                self.retention,
                self.end_txn,
                self.producers,
            ],
            k=6,
        ):
            what()
        self.emit("crash")
        self.emit("open")
        self.emit("high_watermark", offset="end", how="set")

    def damage(self) -> None:
        kind, which = self.rng.random(), {"segment": self.rng.choice([-1, -1, -1, -2, 0, 1])}
        if kind < 0.45:  # the tail or the middle of a segment
            self.emit(
                "damage",
                **which,
                **self.one_of(
                    {"how": "truncate", "at": self.one_of(-1, -30, -61, -70, 0, 17, 61, 100)},
                    {
                        "how": "flip",
                        "at": self.rng.randint(-200, 200),
                        "xor": self.one_of(1, 128, 255),
                    },
                    {
                        "how": "zero",
                        "at": self.rng.randint(-150, 100),
                        "length": self.one_of(1, 20, 100),
                    },
                    {"how": "append_zeros", "length": self.one_of(1, 12, 61, 200)},
                    {"how": "append", "hex": self.one_of("00ff", "00" * 8 + "0000000a", "ff" * 70)},
                    {"how": "join"},
                ),
            )
        elif kind < 0.75:  # an index
            suffix = self.one_of(".index", ".index", ".timeindex", ".timeindex", ".txnindex")
            self.emit(
                "damage",
                **which,
                suffix=suffix,
                **self.one_of(
                    {"how": "delete"},
                    {"how": "delete"},
                    {"how": "truncate", "at": self.one_of(0, -1, -8, -12, 4)},
                    {"how": "zero", "at": 0, "length": 1_000},
                    {"how": "flip", "at": self.rng.randint(-24, 12)},
                    {"how": "append_zeros", "length": self.one_of(1, 12, 34)},
                    {"how": "append", "hex": "00000fff00000fff"},
                ),
            )
        elif kind < 0.85:
            self.emit(
                "damage",
                snapshot=self.rng.randint(-2, 1),
                **self.one_of(
                    {"how": "delete"},
                    {"how": "flip", "at": -3},
                    {"how": "truncate", "at": 4},
                    {"how": "zero", "at": 0, "length": 9},
                ),
            )
        elif kind < 0.94:
            suffix = self.one_of(".log", ".log", ".index", ".timeindex", ".txnindex")
            self.emit(
                "damage",
                **which,
                suffix=suffix,
                how=self.one_of("copy", "copy", "rename"),
                to=self.one_of(".swap", ".cleaned", ".deleted"),
            )
        elif kind < 0.98:
            self.emit(
                "damage",
                file="leader-epoch-checkpoint",
                **self.one_of(
                    {"how": "delete"},
                    {"how": "write", "hex": "300a310a3020300a".lower()},
                    {"how": "write", "hex": b"0\n2\n0 0\n9 3\n".hex()},
                    {"how": "truncate", "at": -1},
                ),
            )
        else:
            self.emit("damage", **which, how="delete")

    # ---- a life -------------------------------------------------------------------------------

    def table(self) -> dict[Callable[[], None], float]:
        """Every operation with its weight; each script loves some and neglects others."""
        on = self.options
        weights = {
            self.append_plain: 10,
            self.append_old_client: 0.7 if on.legacy else 0,
            self.append_by_producer: 12,
            self.append_again: 3,
            self.end_txn: 5 if on.txn else 0,
            self.transactions: 1.2 if on.txn else 0,
            self.verify: 0.4 if on.txn else 0,
            self.append_as_follower: 3 if on.follower else 0,
            self.append_several_as_follower: 2 if on.follower else 0,
            self.append_legacy_as_follower: 0.7 if on.legacy and on.follower else 0,
            self.append_invalid: 4 if on.invalid else 0,
            self.read: 9,
            self.read_all: 0.8,
            self.look_up: 6,
            self.roll: 2,
            self.flush: 1.2,
            self.truncate: 1.8,
            self.delete_records: 1.6,
            self.high_watermark: 3,
            self.reconfigure: 1,
            self.retention: 2,
            self.new_leader: 1.5,
            self.producers: 1,
            self.checkpoint: 1,
            self.files: 0.7,
            self.mtime: 0.4,
            self.clean: 1.2 if on.cleans else 0,
            self.time: 9,
            self.restart: 1.8,
            self.lose_directory: 0.15 if on.hide else 0,
        }
        return {what: weight * self.one_of(0.2, 1, 1, 1, 3) for what, weight in weights.items()}

    def life(self) -> list[Json]:
        self.birth()
        table = self.table()
        length = self.options.ops or self.rng.randint(40, 160)
        while len(self.lines) < length:
            if self.legacy and self.chance(0.5):
                self.legacy -= 1
                self.append_legacy()
            self.rng.choices(list(table), list(table.values()))[0]()
        self.emit("files")
        self.emit(self.one_of("close", "close", "crash"))
        self.emit("files")
        return self.lines


EVERYTHING = Options()


def script(seed: int, options: Options = EVERYTHING) -> str:
    """One script, as lines of JSON."""
    return "".join(json.dumps(line) + "\n" for line in Script(seed, options).life())
