"""One cluster for all tests here, and the logs that their rounds take on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.standalone import Cluster, standalone_cluster
from tests.kill import logs
from tests.support.command_process import compactor


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def topic_configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configs") / "topics.json"


@pytest.fixture(scope="session")
def before(tmp_path_factory: pytest.TempPathFactory, topic_configs: Path) -> Path:
    log_dir = tmp_path_factory.mktemp("logs") / "before"
    logs.write(log_dir, topic_configs)
    return log_dir


@pytest.fixture(scope="session")
def local(before: Path, topic_configs: Path) -> Path:
    """What a run on this machine alone makes of the logs."""
    log_dir = before.with_name("local")
    shutil.copytree(before, log_dir)
    words = ["run", str(log_dir), "--topic-configs", str(topic_configs)]
    words += ["--as-of", str(logs.NOW_MS), "--any-clock", "--master", "local[2]"]
    done = compactor(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    return log_dir
