"""Makes the golden corpora anew: python -m tests.golden.make_corpora. Needs the oracle.

Every edge case and the random logs go into one fleet, so that one round of the compactor takes them
all. The archive holds what a test needs: `before/`, `after/`, `fleet.json`, `topic-configs.json`.
"""

import io
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import fleet
from tests.golden import (
    edge_legacy,
    edge_loading,
    edge_ranges,
    edge_records,
    edge_transactions,
)
from tests.golden.corpora import ARCHIVE
from tests.golden.script import Script
from tests.oracle.random_script import Operation, ScriptOptions, random_script

RANDOM_SEEDS = range(1, 81)
TXN_SEEDS = range(101, 131)
EVERYTHING_SEEDS = (*range(201, 213), 1957756370)
LEGACY_SEEDS = (770003, 770005, 770006, 770015, 770016, 770017, 770018, 770020)
LEGACY_GROUPS = (
    edge_legacy.conversions,
    edge_legacy.tombstones,
    edge_legacy.odd_wrappers,
    edge_legacy.last_batches,
)
GROUPS = (
    *LEGACY_GROUPS,
    edge_records.keys_and_values,
    edge_records.rebuilt_batches,
    edge_records.large_batches,
    edge_records.horizons,
    edge_records.odd_batches,
    edge_records.refused_batches,
    edge_ranges.producers,
    edge_ranges.partial_maps,
    edge_ranges.ranges,
    edge_ranges.lags_and_ratios,
    edge_ranges.groups,
    edge_ranges.files,
    edge_transactions.ended,
    edge_transactions.undecided,
    edge_transactions.producers,
    edge_transactions.spanning,
    edge_transactions.maps,
    edge_transactions.control_batches,
    edge_transactions.stories,
    edge_loading.missing_indexes,
    edge_loading.odd_shapes,
)


def edge_cases() -> dict[str, Script]:
    cases = [case for group in GROUPS for case in group()]
    assert len(cases) == len(dict(cases)), "two cases of one name"
    return dict(cases)


def scripts() -> Iterator[tuple[str, list[Operation]]]:
    for name, script in edge_cases().items():
        yield name, script.lines(name)
    for seed in RANDOM_SEEDS:
        name = f"random-{seed}"
        yield name, random_script(seed, ScriptOptions(topic=name, txn=False, legacy=False))
    for seed in LEGACY_SEEDS:  # each log has messages of format v0 or v1
        name = f"legacy-{seed}"
        yield name, random_script(seed, ScriptOptions(topic=name, txn=False))
    for seed in TXN_SEEDS:
        name = f"txn-{seed}"
        yield name, random_script(seed, ScriptOptions(topic=name, legacy=False))
    for seed in EVERYTHING_SEEDS:
        name = f"everything-{seed}"
        yield name, random_script(seed, ScriptOptions(topic=name))


def pack(root: Path, archive: Path) -> None:
    """Names sorted, no owners, only the times that are held: the same logs give the same bytes."""
    with tarfile.open(archive, "w:xz", preset=9, format=tarfile.PAX_FORMAT) as out:
        for name in ("fleet.json", "topic-configs.json", "before", "after"):
            for path in sorted([root / name, *(root / name).rglob("*")]):
                _add(out, path, str(path.relative_to(root)))


def _add(out: tarfile.TarFile, path: Path, name: str) -> None:
    entry = tarfile.TarInfo(name)
    if (
        path.suffix == ".log"
    ):  # the other times are not held, and would double the archive's entries
        entry.mtime = path.stat().st_mtime_ns // 1_000_000 / 1000
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        out.addfile(entry)
    else:
        data = path.read_bytes()
        entry.size = len(data)
        out.addfile(entry, io.BytesIO(data))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        built = fleet.build(scripts(), Path(scratch))
        outcome = built.kafkas()
        pack(built.root, ARCHIVE)
    counts = {str(kind): list(outcome.values()).count(kind) for kind in fleet.Kafkas}
    sys.stdout.write(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size} bytes, {json.dumps(counts)}\n")


if __name__ == "__main__":
    main()
