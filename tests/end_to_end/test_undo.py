"""A run that keeps its originals and its undoing, as a shell runs them."""

from pathlib import Path

import pytest

from storage.formats import clean_shutdown
from tests.compactor.small_log import build
from tests.end_to_end.test_cli import COMPACTED, summary
from tests.support.command_process import compactor
from tests.support.file_states import state_of

pytestmark = pytest.mark.spark


def test_a_run_is_undone(tmp_path: Path) -> None:
    log_dir, originals = build(tmp_path / "log").parent, tmp_path / "originals"
    clean_shutdown.write(str(log_dir))
    before = state_of(log_dir / "orders-0")
    words = [log_dir, *COMPACTED, "--as-of", "5000", "--any-clock", "--master", "local[1]"]
    expired = originals / "00000000"
    expired.mkdir(parents=True)
    (expired / "run.json").write_text(
        '{"format": "compactor-originals", "schema_version": 1, "run_id": "00000000",'
        ' "started_at_ms": 0, "log_dirs": []}'
    )
    done = compactor("run", *words, "--keep-originals", originals, "--keep-for", "1d")
    assert done.returncode == 0, done.stderr
    assert state_of(log_dir / "orders-0") != before
    run_id = summary(done)["run_id"]
    kept = [p for p in (originals / run_id).rglob("*") if p.is_file() and p.suffix != ".json"]
    assert summary(done)["originals"] == {
        "path": str(originals / run_id),
        "files": len(kept),
        "linked_bytes": sum(path.stat().st_size for path in kept),
        "copied_bytes": 0,
    }
    assert "no disk space is freed until they are discarded" in " ".join(done.stdout.split())
    assert f"\n  to discard them: compactor undo {originals / run_id} --discard\n" in done.stdout
    assert f"\n  to undo the run: compactor undo {originals / run_id}\n" in done.stdout
    assert [path.name for path in originals.iterdir()] == [run_id]
    undone = compactor("undo", originals / run_id)
    assert undone.returncode == 0, undone.stderr
    assert summary(undone)["totals"]["logs"]["undone"] == 1
    assert state_of(log_dir / "orders-0") == before
    assert compactor("verify", log_dir).returncode == 0
    assert compactor("undo", "--discard", originals / run_id).returncode == 0
    assert list(originals.iterdir()) == []
