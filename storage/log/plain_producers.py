"""The producers whose next batches a kernel may append: nothing but their sequences is looked at.

Source: as of `producer_append`; spec L-14.2 to L-14.4.
"""

from struct import Struct

from storage.formats.batch_header import (
    BATCH_HEADER_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PRODUCER_ID_AT,
)
from storage.log.producer_state_entry import BatchMetadata, ProducerStateEntry
from storage.log.producer_state_manager import ProducerStateManager
from storage.log.scratch import Scratch

_PRODUCER = Struct("=4q")  # append_kernel.PlainProducer
_ID = Struct(">q")


class PlainProducers:
    """Those of one log that are in the room of a thread, for the appends of one call."""

    def __init__(self, manager: ProducerStateManager) -> None:
        self._manager = manager
        self.known: list[ProducerStateEntry] = []  # that the kernel was told of

    def forget(self) -> None:
        """Begin anew: state or room may have changed."""
        self.known.clear()

    def put_all(self, room: Scratch) -> bool:
        """Tell the kernel of the producer of the one batch in the room, if it has one, and of no
        other; False where there is more to look at.
        """
        self.known.clear()
        (producer_id,) = _ID.unpack_from(room.view, PRODUCER_ID_AT)
        return producer_id == NO_PRODUCER_ID or self.put(room, producer_id)

    def put(self, room: Scratch, producer_id: int) -> bool:
        """Tell the kernel of a producer; False, and nothing is told, where there is more to look
        at than whether its next sequence follows, or no room.
        """
        manager, number = self._manager, len(self.known)
        known = manager.producers.get(producer_id)
        if (
            known is None
            or known.epoch == NO_PRODUCER_EPOCH
            or number == len(room.producers)
            or manager.verification(producer_id) is not None
            or not _rises(known)
        ):
            return False
        in_transaction = known.txn_first_offset is not None
        _PRODUCER.pack_into(
            room.producers_view,
            number * _PRODUCER.size,
            producer_id,
            known.epoch,
            known.last_sequence + 1,
            in_transaction,
        )
        self.known.append(known)
        return True

    def put_of(self, room: Scratch, start: int, end: int) -> bool:
        """Likewise of the producer of the batch at a byte of the room, which is in use up to end;
        False for one that the kernel knows.
        """
        if end - start < BATCH_HEADER_BYTES:
            return False
        (producer_id,) = _ID.unpack_from(room.view, start + PRODUCER_ID_AT)
        if producer_id == NO_PRODUCER_ID or any(k.producer_id == producer_id for k in self.known):
            return False
        return self.put(room, producer_id)

    def follow(self, room: Scratch, first: int, count: int) -> None:
        """Note so many of the batches in the room, from one on: they are in the log."""
        for row in room.batches[first : first + count].tolist():
            _, _, last_offset, max_timestamp, records, number, last_sequence, _ = row
            if number >= 0:
                known = self.known[number]
                batch = BatchMetadata(last_sequence, last_offset, records - 1, max_timestamp)
                known.add_batch(known.epoch, batch)


def _rises(known: ProducerStateEntry) -> bool:
    """Whether no batch that follows can be one of those that are remembered."""
    last = known.last_sequence
    return last >= NO_SEQUENCE and all(batch.last_sequence <= last for batch in known.batches)
