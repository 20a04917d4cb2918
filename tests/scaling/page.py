"""The tables of docs/scaling.md, between two marks; what stands around them stays."""

from collections.abc import Iterator, Sequence

from tests.bench import scale
from tests.bench.scale import GB, RECORD_BYTES, SEGMENT_BYTES
from tests.bench.table import PAGES, markdown, write_between_marks
from tests.scaling.measure import Measured, ParallelPoint
from tests.scaling.model import OF_DRIVER, OF_TASKS, Model, Point, Size, fit

PAGE = PAGES / "scaling.md"
CORES = (2, 16, 64)
CASES = {  # rounds that nobody has measured
    "1 TB in one partition": Size(
        1000 * GB, 1000 * GB // RECORD_BYTES, 10**9, -(-1000 * GB // SEGMENT_BYTES)
    ),
    "10,000 partitions of 100 MB": Size(
        1000 * GB, 10_000 * (10**8 // RECORD_BYTES), 10**9, 10_000, 10_000
    ),
    "5 G keys, each once": Size(
        5 * GB * RECORD_BYTES, 5 * GB, 5 * GB, -(-5 * GB * RECORD_BYTES // SEGMENT_BYTES)
    ),
}


def write(measured: Measured) -> None:
    write_between_marks(PAGE, "scaling", tables(measured))


def tables(measured: Measured) -> str:
    model = fit(measured.points)
    parts = [
        f"Measured on {measured.machine}.",
        "### What a unit costs",
        _weights(model),
        "### Measured rounds, and what the model says",
        _points(measured.points, model),
        *_parallel(measured.parallel, model),
        "### Large rounds",
        "By processor time alone. Where the disk is slower than the cores, the disk decides.",
        _large(model),
        "### What they come to, simulated",
        _simulated(),
    ]
    return "\n\n".join(parts)


def _weights(model: Model) -> str:
    rows = []
    for name in dict.fromkeys((*OF_TASKS, *OF_DRIVER)):
        each = [weights.get(name) for weights in (model.of_tasks, model.of_driver)]
        rows.append([name, *("–" if weight is None else f"{weight:.3f}" for weight in each)])
    return markdown(["a", "tasks, s", "driver, s"], rows)


def _points(points: Sequence[Point], model: Model) -> str:
    head = ["round", "MB", "tasks, s", "model", "error", "driver, s", "model", "error"]
    rows = [
        [
            point.name,
            f"{point.size.log_bytes / 1e6:.0f}",
            *_compared(point.task_seconds, model.task_seconds(point.size)),
            *_compared(point.driver_seconds, model.driver_seconds(point.size)),
        ]
        for point in points
    ]
    return markdown(head, rows)


def _compared(measured: float, said: float) -> Iterator[str]:
    yield f"{measured:.3f}"
    yield f"{said:.3f}"
    yield f"{said / measured - 1:+.0%}"


def _parallel(points: Sequence[ParallelPoint], model: Model) -> Iterator[str]:
    yield "### Tasks at once"
    if not points:
        yield "Not measured yet: `make scaling MEASURE=1`, on a machine with nothing else to do."
        return
    rows = []
    for point in points:
        said = model.seconds(point.size, 1), model.seconds(point.size, 2)
        seconds = (point.start_seconds, point.seconds, point.processor_seconds)
        rows.append([point.master, *(f"{each:.1f}" for each in (*seconds, *said))])
    head = [
        "master",
        "start, waiting s",
        "round, waiting s",
        "processor, s",
        "model, 1 core",
        "model, 2 cores",
    ]
    yield markdown(head, rows)


def _large(model: Model) -> str:
    rows = []
    for name, size in CASES.items():
        tasks, driver = model.task_seconds(size), model.driver_seconds(size)
        waits = (f"{model.seconds(size, cores) / 60:,.1f}" for cores in CORES)
        rows.append([name, f"{tasks / 60:,.1f}", f"{driver:,.1f}", *waits])
    head = ["round", "tasks, processor min", "driver, s", *(f"{n} cores, min" for n in CORES)]
    return markdown(head, rows)


def _simulated() -> str:
    found = [
        {f"{c.step}: {c.what}": c.number for c in scale.simulate(size.log_bytes, logs=size.logs)}
        for size in CASES.values()
    ]
    rows = [
        [what, *(f"{counts[what]:,}" for counts in found)]
        for what in found[0]
        if all(what in counts for counts in found)
    ]
    return markdown(["on 16 cores", *CASES], rows)
