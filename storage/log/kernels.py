"""Kernels of the engine: a batch to append, batches to look through, all of them at once.

They know batches of format v2 that are as they should be. Whatever else there may be in a log, and
whatever may be wrong, they only tell that they do not know it: then the modules that go batch by
batch decide. They stand here together so that one import loads them.
"""

from storage.kernels.native_calls import pread_address, pwrite_address
from storage.log.append_kernel import DONE, NOT_PLAIN, READY, append_plain
from storage.log.find_kernels import (
    ENDED,
    FOUND,
    MORE,
    UNKNOWN,
    RecoveryLimits,
    find_place,
    find_record,
    find_time,
    last_batch,
    lower_bound,
    recover_batches,
)

__all__ = (
    "DONE",
    "ENDED",
    "FOUND",
    "MORE",
    "NOT_PLAIN",
    "READY",
    "UNKNOWN",
    "RecoveryLimits",
    "append_plain",
    "find_place",
    "find_record",
    "find_time",
    "last_batch",
    "lower_bound",
    "pread_address",
    "pwrite_address",
    "recover_batches",
)
