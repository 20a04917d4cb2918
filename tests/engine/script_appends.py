"""Appends of clients in random scripts: old messages, producers that repeat, transactions."""

from typing import Any

from tests.engine.script_values import PIDS, ScriptValues


class LeaderAppends(ScriptValues):
    """What clients send to a leader."""

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
