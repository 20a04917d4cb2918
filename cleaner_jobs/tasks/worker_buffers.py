"""Buffers that a worker keeps from one window and one task to the next."""

from storage.formats.batch_windows import Buffers

WorkerBuffers = Buffers  # the word for them in tasks
WORKER_BUFFERS = WorkerBuffers()  # one for each worker process; its tasks come one after another
