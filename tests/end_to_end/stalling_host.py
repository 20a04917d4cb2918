"""The local engine's host of workers, whose tasks of one stage never end."""

import sys
from multiprocessing.connection import Connection

from cleaner_jobs.local import worker_host
from tests.end_to_end.bad_input_tasks import stall_here

if __name__ == "__main__":
    driver, control, *workers = map(int, sys.argv[1:])
    stall_here()
    worker_host.main(driver, Connection(control), [Connection(each) for each in workers])
