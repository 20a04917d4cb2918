"""Storage, and the commands that only look, work where neither Spark nor Arrow is installed."""

import json
import pkgutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import storage
from tests.support.command_process import compactor

COMPACTED = ("--include", ".*", "--set", "cleanup.policy=compact")


@pytest.mark.parametrize("package", ["pyspark", "py4j", "pyarrow", "pandas"])
def test_this_environment_has_neither_spark_nor_arrow(package: str) -> None:
    assert find_spec(package) is None


MODULES = [found.name for found in pkgutil.walk_packages(storage.__path__, "storage.")]


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("storage.arrow")])
def test_each_module_of_storage_can_be_imported(module: str) -> None:
    import_module(module)


def test_plan_verify_and_dump_do_their_work(log_dir: Path) -> None:
    plan = compactor("plan", log_dir, *COMPACTED, "--as-of", "5000", "--any-clock")
    assert plan.returncode == 0, plan.stderr
    assert "orders-0" in plan.stdout
    verify = compactor("verify", log_dir)
    assert verify.returncode == 0, verify.stderr
    dump = compactor("dump", log_dir / "orders-0", "--format", "json")
    assert dump.returncode == 0, dump.stderr
    assert all(json.loads(line) for line in dump.stdout.splitlines())
