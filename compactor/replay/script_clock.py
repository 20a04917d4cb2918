"""What a script sets for all its logs: the time, the broker's settings, what follows an append."""

from compactor.replay.script_values import Line
from storage.log.engine.producer_manager import ProducerSettings
from storage.log.engine.scheduler import ManualScheduler

FIRST_CLOCK_MS = 1_700_000_000_000
CONFIGURING = ("broker", "clock", "settings")


class ScriptClock:
    """The clock stands still but for the script's own lines; what is due then is done there."""

    def __init__(self) -> None:
        self.now_ms = FIRST_CLOCK_MS
        self.scheduler = ManualScheduler(lambda: self.now_ms)
        self.producer_settings = ProducerSettings(max_transaction_ms=300_000)
        self.follows_end = False  # whether the high watermark goes to the log end with each append

    def configure(self, op: str, line: Line) -> None:
        """Do one of the lines of CONFIGURING."""
        if op == "broker":
            settings, expiration = self.producer_settings, "producer.id.expiration.ms"
            settings.expiration_ms = line.get(expiration, settings.expiration_ms)
            verifies = line.get("transaction.partition.verification.enable")
            if verifies is not None:
                settings.verifies_transactions = verifies
        elif op == "clock":
            self.now_ms = line.get("ms", self.now_ms + line.get("advance", 0))
            self.scheduler.tick()
        else:
            self.follows_end = line.get("follow_high_watermark", self.follows_end)
