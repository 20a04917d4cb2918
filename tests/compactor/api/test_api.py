"""The package itself: what it offers, what it loads, and that what protects data holds here too."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_origin

import pytest

import compactor
from cleaner_jobs.problems import StageFailedError
from cleaner_jobs.spark.environment import SparkStartError
from compactor import api
from compactor.cleaning import cleaner_manager
from compactor.errors import UsageError
from tests.support.file_states import state_of
from tests.support.local_command import use_local_rounds
from tests.support.made_log import keyed, make_partition

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
ORDERS = api.Rules(settings=COMPACTED, include="orders", assume_fully_replicated=True)


@pytest.fixture
def log_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Three groups to be swapped in, one after the other."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "abab")], 8: [keyed(8, "abcd")]}
    make_partition(tmp_path / "logs", {**segments, 12: [keyed(12, "a")]})
    return str(tmp_path / "logs")


def test_every_name_is_there_and_on_the_page_or_a_value_of_one_that_is() -> None:
    for name in dir(api):
        assert getattr(api, name) is not None
    told = PAGE.read_text(encoding="utf-8")
    commands = "plan run recover explain verify verify_against undo discard dump".split()
    errors = [name for name in dir(api) if name.endswith("Error")]
    assert [n for n in (*commands, *errors) if not re.search(rf"\b{n}\b", told)] == []
    with pytest.raises(AttributeError, match="no attribute 'clean'"):
        api.clean  # type: ignore[attr-defined]  # noqa: B018


def test_every_name_says_what_it_is() -> None:
    """A dataclass without a docstring has its list of fields for one."""
    values = [(name, getattr(compactor, name)) for name in dir(compactor)]
    assert len(values) > 100
    for name, value in values:
        if isinstance(value, type) or (callable(value) and get_origin(value) is not Literal):
            own = vars(value)["__doc__"] if isinstance(value, type) else value.__doc__
            assert own and not own.startswith(f"{name}("), name


def test_every_name_of_the_package_is_there_once_and_hides_no_module() -> None:
    """A module or package of the same name would take the place of the name once it is loaded."""
    root = Path(compactor.__file__).parent
    for name in dir(compactor):
        value = getattr(compactor, name)
        assert not isinstance(value, ModuleType), name
        assert not (root / name).exists() and not (root / f"{name}.py").exists(), name
    assert {"Log", "LogManager", "Record", "KafkaLogDataSource", *dir(api)} <= set(dir(compactor))
    lines = [line for line in _stubs(root).splitlines() if " as " in line]
    assert len(lines) == len(dir(compactor))
    assert all((package / "py.typed").exists() for package in (root, root.parent / "storage"))


def _stubs(root: Path) -> str:
    stubs = (root / "__init__.pyi", root / "api" / "__init__.pyi")
    return "".join(stub.read_text(encoding="utf-8") for stub in stubs)


@pytest.mark.parametrize("wanted", ["compactor", "Log, Record, encode_batch"])
def test_the_names_of_the_engine_load_neither_spark_nor_arrow_nor_kernels(wanted: str) -> None:
    statement = "import compactor" if wanted == "compactor" else f"from compactor import {wanted}"
    code = (
        f"import sys; {statement}; print({{m.split('.')[0] for m in sys.modules}} & set(sys.argv))"
    )
    heavy = ["pyspark", "py4j", "pyarrow", "numba", "pandas"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_to_import_it_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); from compactor import api; "
    code += "print(sorted({m for m in set(sys.modules) - before if m.split('.')[0] in sys.argv}))"
    ours = ["compactor", "cleaner_jobs", "storage", "typing", "re", "numpy", "rich", "pyspark"]
    done = subprocess.run(
        [sys.executable, "-c", code, *ours], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['compactor', 'compactor.api', 'compactor.lazy_names']\n"


@pytest.mark.parametrize(
    ("rules", "options", "problem"),
    [
        (api.Rules(settings=COMPACTED), api.RunOptions(), "would compact every topic"),
        (api.Rules(as_of=1_700_000_000), api.RunOptions(), "are those seconds"),
        (api.Rules(as_of="2999-01-01"), api.RunOptions(), "ahead of this machine's clock"),
        (api.Rules(include="users"), api.RunOptions(), "users"),
        (ORDERS, api.RunOptions(keep_for_ms=1), "needs options.keep_originals"),
    ],
)
def test_guards_hold_for_whoever_calls(
    log_dir: str, rules: api.Rules, options: api.RunOptions, problem: str
) -> None:
    before = state_of(Path(log_dir))
    with pytest.raises(api.ConfigError, match=problem) as refused:
        api.run([log_dir], rules, options)
    assert api.what_was_changed(refused.value) in (None, "Nothing was changed.")
    assert state_of(Path(log_dir)) == before


def test_places_in_a_log_directory_are_refused(
    log_dir: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = f"{log_dir}/x"
    for options in (api.RunOptions(work_dir=inside), api.RunOptions(keep_originals=inside)):
        with pytest.raises(UsageError, match="inside of log directory"):
            api.run([log_dir], ORDERS, options)
    monkeypatch.setenv("TMPDIR", log_dir)
    with pytest.raises(UsageError, match="inside of log directory"):
        api.plan([log_dir], ORDERS)


def test_without_a_word_on_replication_a_run_is_refused(log_dir: str) -> None:
    with pytest.raises(api.RefusedError, match="replicated"):
        api.run([log_dir], api.Rules(settings=COMPACTED, include="orders"))


def test_settings_of_topics_may_be_given_as_they_are(log_dir: str, tmp_path: Path) -> None:
    given = {"orders": {**COMPACTED, "delete.retention.ms": 7000}}
    (tmp_path / "topics.json").write_text(json.dumps(given))
    for topic_configs in (given, str(tmp_path / "topics.json")):
        rules = api.Rules(topic_configs=topic_configs, assume_fully_replicated=True)
        [log] = api.plan([log_dir], rules).round_plan.logs
        assert log.delete_retention_ms == 7000
    with pytest.raises(api.ConfigError, match=r"^topic_configs: topic orders: .*no\.such"):
        api.plan([log_dir], api.Rules(topic_configs={"orders": {"no.such": "1"}}))
    wrong: Any = {"orders": "compact"}
    with pytest.raises(
        api.ConfigError, match=r"^rules\.topic_configs: topic orders: expected an object"
    ):
        api.plan([log_dir], api.Rules(topic_configs=wrong))


class EnoughError(Exception):
    """Of the caller's own."""


@pytest.mark.parametrize("stage", ["scan", "resolve", "rewrite", "swap"])
def test_a_listener_ends_the_call_at_any_stage(log_dir: str, stage: str) -> None:
    """The locks are given back, nothing is left over, and the next run cleans the log."""

    def stop(progress: api.Progress) -> None:
        if progress.stage == stage:
            raise EnoughError

    with pytest.raises(EnoughError) as stopped:
        api.run([log_dir], ORDERS, on_progress=stop)
    changed = api.what_was_changed(stopped.value) or ""
    assert ("Nothing was changed." in changed) is (stage != "swap")
    assert not list(Path(log_dir).rglob("*.compactor-*"))
    [log] = api.run([log_dir], ORDERS).logs
    assert log.status is api.LogStatus.CLEANED


def test_it_ends_between_two_swaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first group of segments stays, the log's checkpoint is not moved, and the rest is old."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    large = {base: [keyed(base, "ab" * 20)] for base in (0, 40, 80)}
    partition = make_partition(tmp_path / "logs", {**large, 120: [keyed(120, "a")]})
    before = {path.name: path.read_bytes() for path in partition.glob("*.log")}

    def stop(progress: api.Progress) -> None:
        if progress.event is api.Event.SWAPPED and progress.swapped_groups == 1:
            raise EnoughError

    rules = api.Rules(
        settings={**COMPACTED, "segment.bytes": "600"},
        include="orders",
        assume_fully_replicated=True,
    )
    log_dir = str(partition.parent)
    with pytest.raises(EnoughError) as stopped:
        api.run([log_dir], rules, on_progress=stop)
    changed = api.what_was_changed(stopped.value) or ""
    assert changed.startswith("1 group of segments had been swapped in and stay")
    after = {path.name: path.read_bytes() for path in partition.glob("*.log")}
    assert [name for name in before if after[name] != before[name]] == [min(before)]
    assert not (partition.parent / "cleaner-offset-checkpoint").exists()
    assert api.run([log_dir], rules).logs[0].status is api.LogStatus.CLEANED


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("storage.log.engine.scheduler", "ManualScheduler", "ManualScheduler"),
        ("storage.log", "Log", "Log"),
        ("storage.log", "LogConfig", "LogConfig"),
        ("storage.log", "LogManager", "LogManager"),
        ("storage.log", "LogOptions", "LogOptions"),
        ("storage.log", "ManagerOptions", "ManagerOptions"),
        ("storage.arrow", "read", "read_table"),
        ("storage.arrow", "append", "append_table"),
        ("storage.arrow", "STOPPED_AT", "STOPPED_AT"),
        ("storage.arrow", "Selection", "Selection"),
    ],
)
def test_a_name_from_its_old_place_is_the_same_and_warns(module: str, name: str, now: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"has moved: from compactor import {now}"):
        old = getattr(import_module(module), name)
    assert old is getattr(compactor, now)


def test_no_import_of_a_package_warns() -> None:
    program = "import compactor, storage.arrow, storage.log.engine; from compactor import Log"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("error", [SparkStartError, StageFailedError])
def test_a_round_that_fails_as_a_whole_raises_one_kind_of_error(
    log_dir: str, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """As the page of the API says: no Java, Spark did not start, or a job was lost."""

    def fail(*_: object) -> None:
        raise error("no Spark")

    monkeypatch.setattr(cleaner_manager, "run_round", fail)
    with pytest.raises(api.CleaningFailedError, match="no Spark") as raised:
        api.run([log_dir], ORDERS)
    assert raised.value.reason_code == "spark-failed"
