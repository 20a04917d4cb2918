"""Log directories of a broker that stopped cleanly, to put obstacles in: small, and made anew."""

import os
import random
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from storage.formats import checkpoint, meta_properties, partition_metadata
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PartitionMetadata, encode_uuid
from storage.log.cluster_metadata import METADATA_DIR
from tests.compactor.plan_logs import Shape, build
from tests.compactor.settings.test_cluster_settings import OTHER, registration
from tests.storage.log.test_cluster_metadata import A, B, batches, config, log, topic
from tests.support.lock_holding import holding

COMPACTED = "__consumer_offsets"  # whose policy is known without any settings
PARTITIONS = 3  # of each of the log directories


@dataclass
class Place:
    """Where a run is asked about."""

    root: Path
    chance: random.Random
    log_dirs: list[Path] = field(default_factory=list)  # that there are
    words: list[str] = field(default_factory=list)  # of the command lines
    patches: list[Callable[[ExitStack], object]] = field(default_factory=list)  # as the user
    held: set[Path] = field(default_factory=set)  # locked by other processes
    to_its_end: ExitStack = field(default_factory=ExitStack)

    def build(self) -> None:
        """One log directory or two, with a metadata log or without."""
        chance = self.chance
        has_metadata, are_two = chance.random() < 0.6, chance.random() < 0.5
        for number, id_ in enumerate((A, B)[: 1 + are_two]):
            path = self.root / f"data{number + 1}"
            first = PARTITIONS * number
            shapes = [Shape(COMPACTED, first + n, chance.randint(1, 4)) for n in range(PARTITIONS)]
            build(path, *shapes, Shape("events", number, 2))
            properties = MetaProperties(1, "cluster", 1, encode_uuid(id_))
            meta_properties.write(str(path), properties)
            for name, own in [*((s.topic, s.partition) for s in shapes), ("events", number)]:
                file = path / f"{name}-{own}" / "partition.metadata"
                topic_id = OTHER if name == COMPACTED else A
                partition_metadata.write(str(file), PartitionMetadata(0, topic_id))
            self.log_dirs.append(path)
        if has_metadata:
            self._metadata()
        if chance.random() < 0.3:
            starts = {(COMPACTED, 0): 2}
            checkpoint.write(str(self.log_dirs[0] / checkpoint.LOG_START), starts)
        if chance.random() < 0.5:
            done = {(COMPACTED, 1): 2}
            checkpoint.write(str(self.log_dirs[0] / checkpoint.CLEANER_OFFSET), done)
        self.words = [str(path) for path in self.log_dirs]

    def _metadata(self) -> None:
        (self.log_dirs[0] / METADATA_DIR).mkdir()
        values = [
            topic(COMPACTED, OTHER),
            config("cleanup.policy", "compact", COMPACTED),
            topic("events", A),
            registration(1, *(A, B)[: len(self.log_dirs)]),
        ]
        log(self.log_dirs[0] / METADATA_DIR, 0, batches(0, *values))

    @property
    def log_dir(self) -> Path:
        return self.chance.choice(self.log_dirs)

    @property
    def partition(self) -> Path:
        """One of a compacted topic."""
        return self.chance.choice(sorted(self.log_dir.glob(f"{COMPACTED}-*[0-9]")))

    def file(self, pattern: str = "*") -> Path:
        """One of a log's files."""
        return self.chance.choice([p for p in sorted(self.partition.glob(pattern)) if p.is_file()])

    def hold(self, path: Path) -> None:
        """Let another process lock it, until the place is left; two obstacles may ask for it."""
        if path in self.held:
            return
        self.held.add(path)
        process = subprocess.Popen(holding(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def end() -> None:
            process.communicate()

        self.to_its_end.callback(end)
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"


def of_root(path: Path, mode: int) -> None:
    """Let root own a file or a directory, if this is root's process; else only the mode is set."""
    if os.geteuid() == 0:
        os.chown(path, 0, 0, follow_symlinks=False)
    path.chmod(mode)
