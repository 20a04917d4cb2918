"""What a command leaves by the way is never in a log directory (F-1.4: no broker would start)."""

from pathlib import Path

import pytest

from compactor.command_line import cli
from compactor.command_line.own_places import require_elsewhere
from compactor.exit_codes import UsageError
from tests.compactor.small_log import build, snapshot_of

ELSEWHERE = {"HOME": "/home/kafka"}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return build(tmp_path / "logs").parent


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
@pytest.mark.parametrize("below", ["", "tmp", "orders-0"])
def test_a_variable_that_leads_there_is_refused(log_dir: Path, name: str, below: str) -> None:
    link = log_dir.with_name("link")
    link.symlink_to(log_dir)
    for path in (log_dir / below, link / below):
        told = f"^{name} {path}: inside of log directory {log_dir}; a broker that starts there"
        with pytest.raises(UsageError, match=told):
            require_elsewhere(ELSEWHERE | {name: str(path)}, ["/nowhere", str(log_dir)])


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
def test_every_command_looks(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(log_dir / "tmp"))
    before = snapshot_of(log_dir)
    assert cli.main([command, str(log_dir)]) == 2
    assert f"TMPDIR {log_dir}/tmp: inside of log directory" in capsys.readouterr().err
    assert snapshot_of(log_dir) == before
