"""Random scripts between appends: reads, look-ups, rolls, truncation, retention, settings, time."""

from tests.engine.script_follower import Appends
from tests.engine.script_values import FAR


class Upkeep(Appends):
    """What is asked of a log and done to it while it is open."""

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
