"""The index of aborted transactions of a segment that is in use.

The bytes of an entry are those of `storage.formats.txn_index`. The file is there once it has an
entry. Source: Kafka, TransactionIndex; spec F-11, L-7.
"""

from collections.abc import Iterator

from storage.files.files import ChangingFile, Files
from storage.formats import txn_index
from storage.formats.txn_index import ENTRY, VERSION, Aborted, AbortedTxn
from storage.kafka_versions import KafkaVersion
from storage.log.errors import CorruptIndexError, IllegalArgumentError, KafkaError
from storage.log.moves import remove_if_there, rename_if_there


class TxnIndexFile:
    """Entries by the offsets of abort markers."""

    def __init__(self, files: Files, path: str, base_offset: int, kafka: KafkaVersion) -> None:
        self._files, self.path, self._base_offset = files, path, base_offset
        self._reads_whole_version = kafka.reads_whole_txn_version
        self._file: ChangingFile | None = None
        self._last_offset: int | None = None  # as far as this object knows
        self.is_new = False  # its name may not be on disk yet
        if files.exists(path):
            self._file = files.open_to_change(path)

    @property
    def size_bytes(self) -> int:
        found = self._files.look_up(self.path)
        return 0 if found is None else found.size_bytes

    def append(self, txn: AbortedTxn) -> None:
        """Put an entry at the end of the file, behind whatever is there."""
        if self._last_offset is not None and self._last_offset >= txn.last_offset:
            raise IllegalArgumentError(
                f"{self.path}: offset {txn.last_offset} is not above {self._last_offset}"
            )
        self._last_offset = txn.last_offset
        if self._file is None:
            self._file = self._files.open_to_change(self.path, create=True)
            self.is_new = True
        self._file.write(self._file.size(), txn_index.encode(txn))

    def entries(self) -> Iterator[AbortedTxn]:
        """Yield the whole entries. KafkaError at one of another version, as far as that is read."""
        return (txn for txn, _ in self._with_positions())

    def _with_positions(self) -> Iterator[tuple[AbortedTxn, int]]:
        if self._file is None:
            return
        data = self._file.read(0, self._file.size())
        for position in range(0, len(data) - ENTRY.size + 1, ENTRY.size):
            version, *values = ENTRY.unpack_from(data, position)
            is_other = version != VERSION if self._reads_whole_version else version >> 8 > VERSION
            if is_other:  # V-8: up to Kafka 4.3 the first of its two bytes is read, with its sign
                raise KafkaError(f"{self.path}, byte {position}: an entry of version {version}")
            yield AbortedTxn(*values), position

    def collect(self, from_offset: int, end_offset: int) -> Aborted:
        """The transactions that touch a range, and whether no later segment has another."""
        return txn_index.search(self.entries(), from_offset, end_offset)

    def check(self) -> None:
        """Raise CorruptIndexError for an entry of an earlier segment, KafkaError for one of a
        later version.
        """
        for txn in self.entries():
            if txn.last_offset < self._base_offset:
                raise CorruptIndexError(
                    f"{self.path}: last offset {txn.last_offset}, below {self._base_offset}"
                )

    def truncate_to(self, offset: int) -> None:
        """Cut the file off at the first entry at or past an offset."""
        last: int | None = None
        for txn, position in self._with_positions():
            if txn.last_offset >= offset:
                assert self._file is not None
                self._file.truncate(position)
                self._last_offset = last
                return
            last = txn.last_offset

    def reset(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
        self._last_offset = None

    def flush(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def rename(self, path: str) -> None:
        before, self.path = self.path, path
        rename_if_there(self._files, before, path)

    def delete(self) -> None:
        self.close()
        remove_if_there(self._files, self.path)
