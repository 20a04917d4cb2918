"""The commands of docs/cluster.md, with what `make dist` leaves, where nothing of ours is.

They are run from an empty directory, in an environment that knows neither this project nor its
`.venv`; Spark itself, which every cluster has, is that of the pip package.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

import pytest

from cleaner_jobs.spark.environment import spark_home
from tests.cluster.standalone import HOSTS, PROJECT, QUICK_START, standalone_cluster
from tests.cluster.test_cluster import contents, left_over
from tests.kill import logs

pytestmark = pytest.mark.archive

PAGE = PROJECT / "docs" / "cluster.md"
ARCHIVE = "log_compactor-0.1.0-py311-linux-x86_64.tar.gz"  # as the page calls it
# of numba, where NUMBA_DEBUG_CACHE is set
LOADED, COMPILED = "[cache] data loaded", "[cache] data saved"
SECONDS = 1800.0  # on a machine that is busy


class Desk(NamedTuple):
    """Where an operator sits: an empty directory, and what the commands of the page name."""

    folder: Path
    archive: Path
    log_dir: Path
    topic_configs: Path
    environ: dict[str, str]

    def run(self, master: str, commands: str) -> subprocess.CompletedProcess[str]:
        """Commands of the page, all in one shell, which ends with the first that fails."""
        spark = "--conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1"
        spark += " --conf spark.executor.memory=512m --conf spark.executorEnv.NUMBA_DEBUG_CACHE=1"
        spark += f" --conf spark.driver.extraJavaOptions={QUICK_START}"
        spark += f" --conf spark.executor.extraJavaOptions={QUICK_START}"
        spark += " --conf spark.scheduler.minRegisteredResourcesRatio=1.0"
        clock = f"--as-of {logs.NOW_MS} --any-clock"
        given = {
            "spark://master:7077": f"'{master}'",
            "/shared/compactor": str(self.folder.parent / "work"),
            "/data/kafka": str(self.log_dir),
            "--topic-configs topics.json": f"--topic-configs {self.topic_configs} {clock}",
            ARCHIVE: str(self.archive),
            "spark-submit ": f"{self.environ['SPARK_HOME']}/bin/spark-submit {spark} ",
        }
        for word, ours in given.items():
            commands = commands.replace(word, ours)
        words = ["sh", "-e", "-c", commands]
        with subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as shell:
            try:
                out, error = shell.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, signal.SIGKILL)  # Spark as well
                raise
        return subprocess.CompletedProcess(words, shell.returncode, out, error)


def commands_of(heading: str) -> str:
    """What is set apart under a heading of the page."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))


@pytest.fixture(scope="session")
def archive() -> Path:
    found = sorted((PROJECT / "dist").glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    assert found, "there is no archive: make dist"
    return found[-1]


def bare_environment(home: Path) -> dict[str, str]:
    """That of a host with Java and Spark, where nobody has ever installed a Python package."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ}
    spark = {"SPARK_HOME": spark_home(os.environ), "SPARK_LOCAL_IP": HOSTS[0]}
    java = os.path.dirname(shutil.which("java") or "/usr/bin/java")
    return {"PATH": f"/usr/bin:/bin:{java}", "HOME": str(home), **kept, **spark}


@pytest.fixture
def desk(archive: Path, before: Path, topic_configs: Path, tmp_path: Path) -> Iterator[Desk]:
    """Its Spark is a folder of links, since a local-cluster works in the folder of Spark."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "work").mkdir()
    shutil.copytree(before, tmp_path / "logs")
    environ = bare_environment(tmp_path / "home")
    (tmp_path / "spark").mkdir()
    for name in ("bin", "jars", "python"):
        (tmp_path / "spark" / name).symlink_to(Path(environ["SPARK_HOME"]) / name)
    environ |= {"SPARK_HOME": str(tmp_path / "spark"), "SPARK_LOCAL_DIRS": str(tmp_path / "local")}
    yield Desk(tmp_path / "empty", archive, tmp_path / "logs", topic_configs, environ)
    shutil.rmtree(tmp_path)


def kernels_of(executors: Path) -> list[tuple[int, list[str]]]:
    """Of each executor below a folder: how many kernels it loaded, and the files it compiled."""
    found = []
    for told in executors.rglob("stderr"):
        text = told.read_text("utf-8", "replace") + told.with_name("stdout").read_text()
        compiled = [line for line in text.splitlines() if COMPILED in line]
        found.append((text.count(LOADED), compiled))
    return found


def kernels_in(environment: Path) -> list[Path]:
    return list((environment / "lib").rglob("*.nbc"))


def check_round(desk: Desk, master: str, executors: Path, local: Path, before: Path) -> None:
    """Plan, dry run and run: the bytes of a local run, and not one kernel compiled on the way."""
    planned = desk.run(master, commands_of("Unpack it where the command is given"))
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert contents(desk.log_dir) == contents(before)
    done = desk.run(master, commands_of("Run"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(desk.log_dir) == contents(local) != contents(before)
    assert left_over(desk.log_dir) == [] and os.listdir(desk.folder.parent / "work") == []
    counts = kernels_of(executors)
    shipped = len(kernels_in(desk.folder / "environment"))
    assert len(counts) >= 2 * len(HOSTS), counts  # a dry run and a run, each on both
    assert not any(compiled for _, compiled in counts), counts
    # at most each once: the daemon has them before it forks the workers
    assert all(loaded <= shipped for loaded, _ in counts) and any(loaded for loaded, _ in counts)


def test_standalone_with_two_workers(desk: Desk, local: Path, before: Path, tmp_path: Path) -> None:
    environ = bare_environment(tmp_path / "home-of-workers")
    with standalone_cluster(tmp_path / "hosts", environ) as cluster:
        check_round(desk, cluster.url, tmp_path / "hosts", local, before)


def test_local_cluster(desk: Desk, local: Path, before: Path, tmp_path: Path) -> None:
    check_round(desk, "local-cluster[2,1,1024]", tmp_path / "spark" / "work", local, before)


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    yield folder
    shutil.rmtree(folder)


def test_every_kernel_unpacked_is_loaded_and_none_compiled(unpacked: Path, tmp_path: Path) -> None:
    """By the call with which the daemon of an executor warms its workers."""
    environ = bare_environment(tmp_path) | {"NUMBA_DEBUG_CACHE": "1"}
    code = "from cleaner_jobs.tasks.kernel_warm_up import warm; warm()"
    words = [str(unpacked / "bin" / "python"), "-c", code]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = (done.stdout + done.stderr).splitlines()
    assert [line for line in told if COMPILED in line] == []
    loaded = sum(LOADED in line for line in told)
    assert 50 <= loaded <= len(kernels_in(unpacked))  # not those that only other kernels call


def digests_of_makers() -> set[str]:
    """Of every file that a package brought here, as its makers say."""
    files = (file for package in distributions() for file in package.files or ())
    return {file.hash.value for file in files if file.hash is not None}


def digest(data: bytes) -> str:
    return urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")


def test_nothing_unpacked_says_where_it_was_made(unpacked: Path) -> None:
    """No path of this machine in any file: of the project, its `.venv`, or Python.

    Nor one of the user's, but in what a package brought: it says where its makers compiled it,
    which may have the same name.
    """
    here = {str(PROJECT), sys.prefix, sys.base_prefix, "/packing-"}
    pattern = re.compile("|".join(map(re.escape, sorted(here))).encode())
    home = f"{Path.home()}/".encode()
    assert home.count(b"/") > 1, "the user has no home directory, so no path of it can be found"
    makers = digests_of_makers()
    files = [path for path in unpacked.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 1000
    found = []
    for path in files:
        data = path.read_bytes()
        if pattern.search(data) or (home in data and digest(data) not in makers):
            found.append(str(path))
    assert found == []
    links = [os.readlink(path) for path in unpacked.rglob("*") if path.is_symlink()]
    assert [target for target in links if "/" in target] == []
