"""Damages to a log directory that a broker left: each small file and name that a start looks at."""

import random
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.formats.partition_metadata import PARTITION_METADATA, encode_uuid


class Place(NamedTuple):
    """Where a damage is done."""

    log_dir: Path
    partition: Path  # the directory of a log in it
    other: Path  # another log directory of the same broker
    rng: random.Random

    def file(self, name: str) -> Path:
        """One that a start reads: of the log, or of its log directory."""
        of_log = name in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)
        return (self.partition if of_log else self.log_dir) / name


Damage = Callable[[Place], None]


def _being(name: str, data: bytes | None) -> Damage:
    def put(place: Place) -> None:
        if data is None:
            place.file(name).unlink(missing_ok=True)
        else:
            place.file(name).write_bytes(data)

    return put


def _beside(name: str, data: bytes) -> Damage:
    """A file that is none of Kafka's, in the directory of the log."""

    def put(place: Place) -> None:
        (place.partition / name).write_bytes(data)

    return put


def _half(name: str) -> Damage:
    def cut(place: Place) -> None:
        path = place.file(name)
        data = path.read_bytes() if path.exists() else b""
        path.write_bytes(data[: place.rng.randrange(len(data) + 1)])

    return cut


def _noise(name: str) -> Damage:
    """One byte becomes another one."""

    def flip(place: Place) -> None:
        path = place.file(name)
        data = bytearray(path.read_bytes() if path.exists() else b"")
        if data:
            data[place.rng.randrange(len(data))] = place.rng.choice(b"\0\n 09ax:=-\xff")
        path.write_bytes(data)

    return flip


def _identity(old: str, new: str) -> Damage:
    """Another value of a property."""

    def change(place: Place) -> None:
        path = place.log_dir / META_PROPERTIES
        lines = path.read_text().splitlines() if path.exists() else []
        kept = [line for line in lines if not line.startswith(f"{old}=")]
        path.write_text("".join(f"{line}\n" for line in [*kept, *([new] if new else [])]))

    return change


def _same_directory_id(place: Place) -> None:
    lines = (place.other / META_PROPERTIES).read_text().splitlines()
    (own,) = (line for line in lines if line.startswith("directory.id"))
    _identity("directory.id", own)(place)


def _another_topic(place: Place) -> None:
    other = encode_uuid(uuid.UUID(int=place.rng.getrandbits(128)))
    (place.partition / PARTITION_METADATA).write_text(f"version: 0\ntopic_id: {other}")


def _padded_id(place: Place) -> None:
    path = place.partition / PARTITION_METADATA
    path.write_bytes(path.read_bytes() + b"==" if path.exists() else b"")


def _directory(name: str) -> Damage:
    return lambda place: (place.log_dir / name).mkdir(exist_ok=True)


def _copied(suffix: str, elsewhere: bool, other_topic: bool = False) -> Damage:
    """A copy of the log's directory: in another log directory, or under another name."""

    def copy(place: Place) -> None:
        target = (place.other if elsewhere else place.log_dir) / f"{place.partition.name}{suffix}"
        shutil.copytree(place.partition, target, dirs_exist_ok=True)
        if other_topic:
            _another_topic(place._replace(partition=target))

    return copy


def _as_directory(name: str) -> Damage:
    def replace(place: Place) -> None:
        path = place.file(name)
        path.unlink(missing_ok=True)
        path.mkdir(exist_ok=True)

    return replace


def _gone(pattern: str) -> Damage:
    def remove(place: Place) -> None:
        for path in place.partition.glob(pattern):
            path.unlink()

    return remove


def _late_start(place: Place) -> None:
    topic = place.partition.name.rpartition("-")[0]
    checkpoint.write(str(place.log_dir / checkpoint.LOG_START), {(topic, 0): 99_999})


_HEX = "0123456789abcdef" * 2
_NUL = bytes(64)
CHECKPOINTS = (
    checkpoint.RECOVERY_POINT,
    checkpoint.LOG_START,
    checkpoint.REPLICATION,
    checkpoint.CLEANER_OFFSET,
)


def _of_checkpoint(name: str) -> Mapping[str, Damage]:
    texts = {
        "NULs": _NUL,
        "empty": b"",
        "missing": None,
        "a count too high": b"0\n2\nt 0 0\n",
        "a count too low": b"0\n0\nt 0 0\n",
        "no number": b"0\n1\nt 0 x\n",
        "no number, and cut": b"0\n3\nt x 0\nt 0",
        "too few fields": b"0\n1\nt 0\n",
        "version 1": b"1\n0\n",
        "a version alone": b"0",
        "no version": b"zero\n0\n",
        "a blank line": b"0\n0\n\n",
        "not UTF-8": b"0\n1\n\xff\xfe 0 0\n",
    }
    if name == checkpoint.LOG_START:  # which only logs with a raised start would show
        texts = {kind: data for kind, data in texts.items() if "no number" not in kind}
    made = {f"{name}: {kind}": _being(name, data) for kind, data in texts.items()}
    return made | {f"{name}: half": _half(name), f"{name}: a byte": _noise(name)}


_EPOCHS = {
    "NULs": _NUL,
    "empty": b"",
    "missing": None,
    "a count too high": b"0\n2\n0 0\n",
    "no number": b"0\n1\n0 x\n",
    "an epoch below 0": b"0\n1\n-1 0\n",
    "an offset below 0": b"0\n1\n0 -7\n",
    "too many fields": b"0\n1\n0 0 0\n",
    "version 1": b"1\n0\n",
    "a version alone": b"0",
    "CRLF": b"0\r\n1\r\n0 0\r\n",
    "a blank line": b"0\n1\n0 0\n\n",
    "not UTF-8": b"0\n1\n\xff 0\n",
}
_METADATA = {
    "missing": None,
    "empty": b"",
    "NULs": bytes(43),
    "a version alone": b"version: 0",
    "a version and a line end": b"version: 0\n",
    "a blank id": b"version: 0\ntopic_id: ",
    "an id of zeros": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    "a short id": b"version: 0\ntopic_id: abc",
    "a long id": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "no base64": b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!",
    "a negative version": b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAB",
    "no version": b"version: x\ntopic_id: AAAAAAAAAAAAAAAAAAAAAB",
    "no space": b"version:0\ntopic_id:AAAAAAAAAAAAAAAAAAAAAB",
    "not UTF-8": b"version: 0\ntopic_id: \xff\xfe",
}
_NAMES = {  # of files in the directory of a log
    "x.log": b"",
    ".log": b"",
    "99999999999999999999.log": b"",
    "x.index": b"",
    "x.snapshot": b"",
    "x.log.swap": b"",
    "x.cleaned": b"",
    "x.deleted": b"",
    "notes.txt": b"x",
    "00000000000000000000.log.orig": b"x",
    "9.snapshot": b"",
    "9.index": b"",
    "9.log.deleted": b"",
    "9.log": b"",
    "000000000000000000009.log": b"",
    "000000000000000000000.log": b"",
}
_DIRECTORIES = (
    *("lost+found", ".staging", "backup", "x-y", "t-", "staging-1", "remote-log-index-cache"),
    *("t-\uff11", "t-1-delete", f"t-1.{_HEX}-delete", f"t-1.{_HEX}-stray", f"t-1.{_HEX}-future"),
)

KINDS: Mapping[str, Mapping[str, Damage]] = {
    "checkpoints": {
        kind: damage for name in CHECKPOINTS for kind, damage in _of_checkpoint(name).items()
    },
    "epochs": {
        **{f"epochs: {k}": _being(LEADER_EPOCH_CHECKPOINT, data) for k, data in _EPOCHS.items()},
        "epochs: half": _half(LEADER_EPOCH_CHECKPOINT),
        "epochs: a byte": _noise(LEADER_EPOCH_CHECKPOINT),
    },
    "topic id": {
        **{f"topic id: {k}": _being(PARTITION_METADATA, data) for k, data in _METADATA.items()},
        "topic id: half": _half(PARTITION_METADATA),
        "topic id: a byte": _noise(PARTITION_METADATA),
        "topic id: of another topic": _another_topic,
        "topic id: padded": _padded_id,
    },
    "identity": {
        "identity: missing": _being(META_PROPERTIES, None),
        "identity: empty": _being(META_PROPERTIES, b""),
        "identity: NULs": _being(META_PROPERTIES, _NUL),
        "identity: no node": _identity("node.id", ""),
        "identity: no cluster": _identity("cluster.id", ""),
        "identity: no directory": _identity("directory.id", ""),
        "identity: version 7": _identity("version", "version=7"),
        "identity: another cluster": _identity("cluster.id", "cluster.id=AAAAAAAAAAAAAAAAAAAAAA"),
        "identity: another node": _identity("node.id", "node.id=5"),
        "identity: of another directory": _same_directory_id,
        "identity: no directory id": _identity("directory.id", "directory.id=abc"),
        "identity: half": _half(META_PROPERTIES),
        "identity: a version and a blank": _identity("version", "version=1 "),
    },
    "names": {
        **{f"file {name}": _beside(name, data) for name, data in _NAMES.items()},
        **{f"directory {name}": _directory(name) for name in _DIRECTORIES},
    },
    "directories for files": {
        **{f"{name}: a directory": _as_directory(name) for name in CHECKPOINTS},
        "epochs: a directory": _as_directory(LEADER_EPOCH_CHECKPOINT),
        "topic id: a directory": _as_directory(PARTITION_METADATA),
    },
    "copies": {
        "copy in another directory": _copied("", True),
        "copy of another topic": _copied("", True, other_topic=True),
        "copy on its way": _copied(f".{_HEX}-future", True),
        "copy to be deleted": _copied(f".{_HEX}-delete", False),
        "copy with the same number": _copied("0", False),  # 00
    },
    "logs": {
        "no .index": _gone("*.index"),
        "no .timeindex": _gone("*.timeindex"),
        "no snapshot": _gone("*.snapshot"),
        "a log start behind the end": _late_start,
    },
    "shutdown": {"unclean": _being(CLEAN_SHUTDOWN, None)},
}


def draw(rng: random.Random) -> list[str]:
    """Names of one to three damages: each kind as often as any other."""
    count = rng.choice([1, 1, 1, 2, 3])
    return [rng.choice(sorted(KINDS[rng.choice(sorted(KINDS))])) for _ in range(count)]


def of(name: str) -> Damage:
    return next(kind[name] for kind in KINDS.values() if name in kind)
