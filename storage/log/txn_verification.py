"""A transaction that is about to begin in a log, and has to be known to its coordinator before.

Source: Kafka, UnifiedLog.maybeStartTransactionVerification; spec L-15.
"""

from storage.log.errors import InvalidProducerEpochError
from storage.log.parts import LogParts
from storage.log.producer_state_entry import (
    SENTINEL,
    VerificationGuard,
    VerificationStateEntry,
)


def start_verification(
    parts: LogParts, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
) -> VerificationGuard:
    """Give what the append that begins the transaction has to hand in; SENTINEL for one that is
    going on."""
    producers = parts.producers
    known = producers.producers.get(producer_id)
    if known is not None and known.epoch > epoch:
        raise InvalidProducerEpochError(
            f"producer {producer_id} has epoch {known.epoch}, asked for {epoch}"
        )
    if producers.has_ongoing(producer_id, epoch):
        return SENTINEL
    new = VerificationStateEntry(
        created_ms=parts.now_ms,
        lowest_sequence=sequence,
        epoch=epoch,
        supports_epoch_bump=supports_epoch_bump,
    )
    return producers.start_verification(producer_id, new)
