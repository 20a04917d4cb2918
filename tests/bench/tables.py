"""Records of 100 bytes appended to a log from a table, and read into one: processor time.

In this process and on one thread. The kernels are loaded before the clock starts.
"""

import shutil
from statistics import median

import numpy as np
import pyarrow as pa

from compactor import Batching, Log, LogOptions, Selection, append_table, read_table
from storage.codecs.compression import Codec
from storage.log.scheduler import ManualScheduler
from tests.bench.results import BenchError
from tests.bench.scratch import Setup
from tests.bench.timing import timed
from tests.bench.workloads import NOW_MS, TABLES

KEY_BYTES, VALUE_BYTES = 16, 75  # which makes records of 100 bytes
CHUNK, RECORDS, QUICK_RECORDS = 100_000, 3_000_000, 200_000
SELECTION = Selection(columns=["offset", "timestamp", "key", "value"])


def measure(setup: Setup) -> dict[str, float]:
    """Return millions of records a second of processor time, by what was done with them."""
    setup.tell(f"{TABLES}: records appended from a table, and read into one")
    records = QUICK_RECORDS if setup.is_quick else RECORDS
    table = pa.Table.from_batches([chunk(seed) for seed in range(records // CHUNK)])
    found: dict[str, list[float]] = {}
    for codec in (Codec.NONE, Codec.LZ4):
        for turn in range(setup.repetitions + 1):
            speeds = _turn(setup, table, codec)
            for what, speed in speeds.items() if turn else ():  # the first one loads the kernels
                found.setdefault(f"{what}, {codec.name.lower()}", []).append(speed)
    return {what: median(speeds) for what, speeds in found.items()}


def chunk(seed: int) -> pa.RecordBatch:
    """Return records with random keys, and values of which half is random."""
    chance = np.random.default_rng(seed)
    values = np.full((CHUNK, VALUE_BYTES), ord("v"), np.uint8)
    values[:, : VALUE_BYTES // 2] = chance.integers(0, 256, (CHUNK, VALUE_BYTES // 2), np.uint8)
    keys = chance.integers(0, 256, (CHUNK, KEY_BYTES), np.uint8)
    columns = {"key": keys, "value": values}
    return pa.record_batch({name: _binary(cells) for name, cells in columns.items()})


def _binary(cells: "np.typing.NDArray[np.uint8]") -> pa.Array:
    fixed = pa.binary(cells.shape[1])
    buffers = [None, pa.py_buffer(cells.tobytes())]
    return pa.Array.from_buffers(fixed, len(cells), buffers).cast(pa.binary())


def _turn(setup: Setup, table: pa.Table, codec: Codec) -> dict[str, float]:
    path = setup.scratch.copies / "bench-0"
    options = LogOptions(clock=lambda: NOW_MS, scheduler=ManualScheduler(lambda: NOW_MS))
    try:
        with Log.open(str(path), options) as log:
            appended, done = timed(lambda: append_table(log, table, Batching(codec=codec)))
        taken, read = timed(lambda: read_table(path, SELECTION))
    finally:
        shutil.rmtree(path, ignore_errors=True)
    if not done.records == read.num_rows == table.num_rows:
        raise BenchError(f"{done.records} of {table.num_rows} records, {read.num_rows} read")
    millions = table.num_rows / 1e6
    return {"append": millions / appended.cpu_seconds, "read": millions / taken.cpu_seconds}
