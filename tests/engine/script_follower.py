"""Appends of random scripts that no client sends: batches as fetched, and invalid ones."""

from tests.engine.script_appends import LeaderAppends
from tests.engine.script_values import FAR, PIDS, Json


class Appends(LeaderAppends):
    """All kinds of appends."""

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
