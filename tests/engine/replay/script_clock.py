"""What a script sets for all its logs: the time, the broker's settings, what follows an append."""

from storage.kafka_versions import KafkaVersion
from storage.log.producer_state_manager import ProducerStateManagerConfig
from storage.log.scheduler import ManualScheduler
from tests.engine.replay.script_values import Line

FIRST_CLOCK_MS = 1_700_000_000_000
CONFIGURING = ("broker", "clock", "settings")


class ScriptClock:
    """The clock stands still but for the script's own lines; what is due then is done there."""

    def __init__(self, kafka: KafkaVersion) -> None:
        """kafka: whose answer is given where the versions differ."""
        self.kafka = kafka
        self.now_ms = FIRST_CLOCK_MS
        self.scheduler = ManualScheduler(lambda: self.now_ms)
        self.producer_settings = ProducerStateManagerConfig(max_transaction_ms=300_000)
        self.follows_end = False  # whether the high watermark goes to the log end with each append

    def configure(self, op: str, line: Line) -> None:
        """Do one of the lines of CONFIGURING."""
        if op == "broker":
            settings, expiration = self.producer_settings, "producer.id.expiration.ms"
            settings.expiration_ms = _number(line, expiration, settings.expiration_ms)
            verification = "transaction.partition.verification.enable"
            if line.get(verification) is not None:
                settings.verifies_transactions = _truth(line, verification)
        elif op == "clock":
            self.now_ms = _number(line, "ms", self.now_ms + _number(line, "advance", 0))
            self.scheduler.tick()
        else:
            self.follows_end = line.get("follow_high_watermark", self.follows_end)


def _number(line: Line, name: str, default: int) -> int:
    """A whole number, or the text of one, which Kafka's settings are."""
    return int(line.get(name, default))


def _truth(line: Line, name: str) -> bool:
    """True or false, or the text of one."""
    return str(line[name]).strip().lower() == "true"
