"""Executors that call the driver's directories by other names, or see something else under them.

Each worker is in a mount namespace of its own: what the driver calls `base` is empty there, and the
directory itself stands at another place, a different one on each.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.standalone import (
    HOSTS,
    PROJECT,
    Cluster,
    another_worker,
    environment,
    standalone_cluster,
)
from tests.cluster.test_cluster import AS_OF, SECONDS, contents, left_over, slowed

pytestmark = pytest.mark.spark
UNSHARE = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")))
ELSEWHERE = 'mount --bind "$0" "$1" && mount -t tmpfs none "$0" && shift && exec "$@"'


class Place(NamedTuple):
    """Where the driver has logs and work directory, and where each worker sees them."""

    base: Path
    seen: tuple[Path, ...]
    cluster: Cluster


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("mounts")
    base, seen = folder / "base", tuple(folder / "seen" / host for host in HOSTS)
    for directory in (base, *seen):
        directory.mkdir(parents=True)
    wrap = {
        host: [*UNSHARE, "sh", "-c", ELSEWHERE, str(base), str(directory)]
        for host, directory in zip(HOSTS, seen, strict=True)
    }
    with standalone_cluster(folder / "cluster", environment(), wrap) as cluster:
        yield Place(base, seen, cluster)


class Ended(NamedTuple):
    code: int
    told: str  # the lines of the command itself
    reason_code: str


@pytest.fixture
def log_dir(place: Place, before: Path) -> Iterator[Path]:
    """The logs as they are before a round."""
    shutil.copytree(before, place.base / "logs")
    (place.base / "work").mkdir()
    yield place.base / "logs"
    shutil.rmtree(place.base / "logs")
    shutil.rmtree(place.base / "work")


def begin(
    place: Place, log_dir: Path, configs: Path, names: Sequence[Path] = ()
) -> "subprocess.Popen[str]":
    """A run whose executors are given these names for base."""
    report = place.base / "report.json"
    words = ["run", log_dir, "--topic-configs", configs, *AS_OF, "--report", report]
    words += ["--work-dir", place.base / "work"]
    words += [word for name in names for word in ("--executor-path", f"{place.base}={name}")]
    return subprocess.Popen(
        place.cluster.submit(PROJECT / "compactor" / "__main__.py", *words, conf={}),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def end(place: Place, process: "subprocess.Popen[str]") -> Ended:
    try:
        out, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()  # one that has not come to its end; its Python ends with it
    told = [line for line in out.splitlines() if line.startswith("compactor: ")]
    document = json.loads((place.base / "report.json").read_text())
    return Ended(process.returncode, "\n".join(told), document["reason_code"])


def run(place: Place, log_dir: Path, configs: Path, names: Sequence[Path]) -> Ended:
    return end(place, begin(place, log_dir, configs, names))


def test_another_mount_of_the_same_name_is_refused(
    place: Place, log_dir: Path, before: Path, topic_configs: Path
) -> None:
    ended = run(place, log_dir, topic_configs, [])
    assert (ended.code, ended.reason_code) == (3, "unfit-executor")
    host = os.uname().nodename
    work = f"{place.base}/work/"
    assert ended.told.startswith(f"compactor: executor on {host}: {work}"), ended.told
    assert "/token: No such file or directory; --work-dir has to name" in ended.told
    assert ended.told.endswith(" Nothing was changed.")
    assert contents(log_dir) == contents(before)


def test_one_executor_without_the_mount_is_refused(
    place: Place, log_dir: Path, before: Path, topic_configs: Path
) -> None:
    """Though the name that is given is right on the other one."""
    ended = run(place, log_dir, topic_configs, place.seen[:1])
    assert (ended.code, ended.reason_code) == (3, "unfit-executor")
    assert f": {place.seen[0]}/work/" in ended.told
    assert contents(log_dir) == contents(before)


def test_with_its_names_on_every_host_the_bytes_are_those_of_a_local_run(
    place: Place, log_dir: Path, local: Path, topic_configs: Path
) -> None:
    ended = run(place, log_dir, topic_configs, place.seen)
    assert (ended.code, ended.reason_code) == (0, "done"), ended.told
    assert contents(log_dir) == contents(local)
    assert left_over(log_dir) == [] and os.listdir(place.base / "work") == []


def test_an_executor_that_comes_later_is_asked_before_it_works(
    before: Path, local: Path, topic_configs: Path, tmp_path: Path
) -> None:
    """The first one is slow, so that much is left to do for the second, which lacks the mount."""
    base = tmp_path / "base"
    shutil.copytree(before, base / "logs")
    (base / "work").mkdir()
    with standalone_cluster(tmp_path / "cluster", hosts=HOSTS[:1]) as cluster:
        place = Place(base, (), cluster)
        with slowed(cluster, cluster.brakes[:1]):
            process = begin(place, base / "logs", topic_configs)
            while not cluster.trace.exists():
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.05)
            hidden = 'mount -t tmpfs none "$0" && exec "$@"'
            without = [*UNSHARE, "sh", "-c", hidden, str(base)]
            with another_worker(cluster, HOSTS[1], environment(), without):
                ended = end(place, process)
    assert (ended.code, ended.reason_code) == (1, "unfit-executor"), ended.told
    host = os.uname().nodename
    assert f"executor on {host} cannot do its part: {base}/work/" in ended.told
    left, old, new = (contents(path) for path in (base / "logs", before, local))
    assert left != new  # of an empty segment nothing is written, so no brake holds it back
    assert [n for n in left | old | new if left.get(n) not in (old.get(n), new.get(n))] == []
