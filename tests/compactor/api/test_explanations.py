"""`explain` looks at a log by the files of its context, like every other command."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from compactor import api
from compactor.api import explanations
from compactor.api.round_context import RoundContext, read_round_context
from compactor.settings.rules import Rules
from storage.file_names import DELETE_DIR, FUTURE_DIR, STRAY_DIR, special_dir
from tests.compactor.plan_logs import NOW_MS, build, clean_up_to
from tests.support.files.memory import in_memory

COMPACTED = api.Rules(
    settings={"cleanup.policy": "compact"}, include="t", as_of=NOW_MS, any_clock=True
)


def test_a_log_is_explained_by_the_files_that_are_handed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory it was cleaned up to offset 2; on the disk of the same name nothing is known."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 2))
    files = in_memory(tmp_path)
    (tmp_path / "d" / "cleaner-offset-checkpoint").unlink()

    def context(rules: Rules, log_dirs: Sequence[str]) -> RoundContext:
        return read_round_context(rules, log_dirs)._replace(files=files)

    assert bound(api.explain([log_dir], "t-0", COMPACTED), "cleaner checkpoint") is None
    monkeypatch.setattr(explanations, "read_round_context", context)
    found = api.explain([log_dir], "t-0", COMPACTED)
    assert bound(found, "cleaner checkpoint") == 2
    assert bound(found, "log end offset") == 6


def bound(found: api.Explanation, name: str) -> int | float | None:
    [value] = [bound.value for bound in found.bounds if bound.name == name]
    return value


@pytest.mark.parametrize(
    ("suffix", "said"),
    [
        (FUTURE_DIR, "is a copy of it that a broker was making to move the log here"),
        (STRAY_DIR, "is one that a broker has set aside"),
        (DELETE_DIR, "is one that a broker is deleting"),
    ],
)
def test_a_log_of_which_only_another_directory_is_there_is_said_to_be_so(
    tmp_path: Path, suffix: str, said: str
) -> None:
    log_dir = build(tmp_path / "d")
    apart = special_dir("w", 0, suffix)
    (tmp_path / "d" / apart).mkdir()
    with pytest.raises(api.ConfigError, match=f"w-0: no such partition.*{apart} {said}"):
        api.explain([log_dir], "w-0", api.Rules(as_of=NOW_MS, any_clock=True))
