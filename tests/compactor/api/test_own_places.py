"""What a command leaves by the way is never in a log directory (F-1.4: no broker would start)."""

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from compactor import api
from compactor.api.path_arguments import require_elsewhere, require_temporary_elsewhere
from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.errors import UsageError
from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.support.file_states import state_of

ELSEWHERE = {"HOME": "/home/kafka"}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return build(tmp_path / "logs").parent


NAMES = ["TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"]
SPARK_NAMES = {"SPARK_EXECUTOR_DIRS": ":", "SPARK_LOCAL_DIRS": ","}


@pytest.mark.parametrize("name", [*NAMES, *SPARK_NAMES])
@pytest.mark.parametrize("below", ["", "tmp", "orders-0"])
def test_a_variable_that_leads_there_is_refused(log_dir: Path, name: str, below: str) -> None:
    link = log_dir.with_name("link")
    link.symlink_to(log_dir)
    for path in (log_dir / below, link / below):
        told = f"^{name} {path}: inside of log directory {log_dir}; a broker that starts there"
        with pytest.raises(UsageError, match=told):
            require_elsewhere(ELSEWHERE | {name: str(path)}, ["/nowhere", str(log_dir)])


@pytest.mark.parametrize(("name", "separator"), list(SPARK_NAMES.items()))
def test_each_of_sparks_directories_counts(log_dir: Path, name: str, separator: str) -> None:
    """They win over spark.local.dir, which is ours."""
    for paths in (["/var/a", str(log_dir), "/var/b"], ["", str(log_dir / "blocks")]):
        told = f"^{name} {paths[1]}: inside of log directory {log_dir};"
        with pytest.raises(UsageError, match=told):
            require_elsewhere(ELSEWHERE | {name: separator.join(paths)}, [str(log_dir)])
    for text in ("", separator, f"/var/a{separator}/var/b"):
        require_elsewhere(ELSEWHERE | {name: text}, [str(log_dir)])


def test_a_session_that_is_given_counts(log_dir: Path) -> None:
    """It has its directories by then: whoever gave it learns of them, and nothing else is done."""
    conf = {"spark.local.dir": f"/var/tmp,{log_dir}/blocks"}
    of_java = SimpleNamespace(isStopped=lambda: False)
    context = SimpleNamespace(_conf=conf, _jsc=SimpleNamespace(sc=lambda: of_java))
    session = cast("SparkSession", SimpleNamespace(sparkContext=context))
    before = state_of(log_dir)
    told = f"^spark.local.dir {log_dir}/blocks: inside of log directory {log_dir}; a broker"
    with pytest.raises(UsageError, match=told):
        api.run([str(log_dir)], options=api.RunOptions(session=session))
    assert state_of(log_dir) == before


def test_so_is_a_user_whose_home_is_the_log_directory(log_dir: Path) -> None:
    """Its broker runs, as it keeps no cache; ours would be `.cache` there."""
    home = {"HOME": str(log_dir)}
    told = f"not set: the cache directory {log_dir}/.cache: inside of log directory {log_dir};"
    with pytest.raises(UsageError, match=told):
        require_elsewhere(home, [str(log_dir)])
    require_elsewhere(home | {"XDG_CACHE_HOME": "/var/cache"}, [str(log_dir)])


def test_places_around_and_beside_it_are_not(log_dir: Path) -> None:
    for name in ("TMPDIR", "XDG_CACHE_HOME", "HOME"):
        for path in (log_dir.parent, f"{log_dir}-tmp", "", "/"):
            require_elsewhere(ELSEWHERE | {name: str(path)}, [str(log_dir)])


@pytest.mark.parametrize("command", ["run", "plan", "recover", "verify"])
@pytest.mark.parametrize("name", ["TMPDIR", "SPARK_LOCAL_DIRS"])
def test_every_command_looks(
    log_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
) -> None:
    monkeypatch.setenv(name, str(log_dir / "tmp"))
    before = state_of(log_dir)
    assert cli.main([command, str(log_dir)]) == 2
    assert f"{name} {log_dir}/tmp: inside of log directory" in capsys.readouterr().err
    assert state_of(log_dir) == before


@pytest.fixture
def nowhere_but_here(log_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log directory is the current one, and of the usual ones none takes a byte."""
    monkeypatch.chdir(log_dir)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    listed = tempfile._candidate_tempdir_list  # type: ignore[attr-defined]
    usual = ("/tmp", "/var/tmp", "/usr/tmp")

    def candidates() -> list[str]:
        return [path for path in listed() if path not in usual]

    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", candidates)
    monkeypatch.setattr(tempfile, "tempdir", None)
    return log_dir


@pytest.mark.parametrize("words", [[], ["--dry-run"], ["--work-dir"]])
def test_a_run_makes_no_temporary_directory_in_the_current_one(
    nowhere_but_here: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    """Nor does pyspark, whose gateway needs one whatever the work directory is."""
    clean_shutdown.write(str(nowhere_but_here))
    before = state_of(nowhere_but_here)
    monkeypatch.setattr(cleaner_manager, "run_round", lambda *_: pytest.fail("the engine is asked"))
    more = [str(tmp_path / "work")] if words == ["--work-dir"] else []
    compacted = ["--include", "orders", "--set", "cleanup.policy=compact"]
    assert cli.main(["run", ".", *compacted, *words, *more]) == 2
    told = f"the temporary directory {nowhere_but_here}: inside of log directory"
    assert told in capsys.readouterr().err
    assert state_of(nowhere_but_here) == before
    assert cli.main(["plan", "."]) == 0  # makes none


def test_that_there_is_no_temporary_directory_is_for_others_to_say(
    nowhere_but_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", list)
    require_temporary_elsewhere([str(nowhere_but_here)])
