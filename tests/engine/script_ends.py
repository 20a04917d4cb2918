"""Ends of a log in random scripts: closed or crashed, damaged, opened again; disks that go away."""

from tests.engine.script_upkeep import Upkeep
from tests.engine.script_values import Json


class Ends(Upkeep):
    """What ends a log, and what is left of it when it is opened again."""

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
