"""`python -m tests.scaling`: fits the model to the measured points, and writes it into its page.

With --measure the points are measured again first; only a quiet machine makes good ones.
"""

import argparse
import os
import platform
import sys

from compactor.host.output import print_line
from tests.scaling import measure, page
from tests.scaling.shapes import SHAPES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scaling", description=__doc__)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        load = os.getloadavg()[0]  # of others: nothing of this has begun
        found = []
        for point in measure.points(SHAPES):
            print_line(f"{point.name}: {point.task_seconds:.2f} s, {point.driver_seconds:.2f} s")
            found.append(point)
        [long] = [shape for shape in SHAPES if shape.name == "long"]
        cores = len(os.sched_getaffinity(0))
        machine = f"{platform.machine()}, {cores} cores, load {load:.2f} before"
        measure.save(measure.Measured(machine, found, list(measure.parallel_points(long))))
    page.write(measure.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
