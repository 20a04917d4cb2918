"""What a careless --as-of would do to tombstones is refused by a run, and told where one reads."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.api.as_of import doubt_of_clock
from compactor.cleaning import cleaner_manager
from compactor.command_line import cli
from compactor.settings.rules import option_names
from tests.compactor.rounds import report
from tests.support.file_states import state_of

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
COMPACTED = ("--include", "orders", "--set", "cleanup.policy=compact")


@pytest.mark.parametrize(
    ("text", "as_of_ms", "told"),
    [
        (
            "1700000000",
            1_700_000_000,
            "--as-of 1700000000: is 1970-01-20T16:13:20.000Z; are those seconds? In milliseconds "
            "2023-11-14T22:13:20.000Z is 1700000000000; --any-clock accepts it",
        ),
        (
            "5",
            5,
            "--as-of 5: is 1970-01-01T00:00:00.005Z; without --as-of it is the present time; "
            "--any-clock accepts it",
        ),
        (
            "1970-12-31T23:59:59.999Z",
            31_535_999_999,
            "--as-of 1970-12-31T23:59:59.999Z: is 1970-12-31T23:59:59.999Z; without --as-of it is "
            "the present time; --any-clock accepts it",
        ),
        ("1971-01-01", 31_536_000_000, None),
        ("2023-11-14T22:18:20Z", NOW_MS + 300_000, None),
        (
            "1700000301000",
            NOW_MS + 301_000,
            "--as-of 1700000301000: is 2023-11-14T22:18:21.000Z, 301 s ahead of this machine's "
            "clock, 2023-11-14T22:13:20.000Z; tombstones would go before their time. Without "
            "--as-of it is the present time; --any-clock accepts it",
        ),
        (
            "1800000000000",
            NOW_MS + 100_000_000_000,
            "--as-of 1800000000000: is 2027-01-15T08:00:00.000Z, 1,157 days ahead of this "
            "machine's clock, 2023-11-14T22:13:20.000Z; tombstones would go before their time. "
            "Without --as-of it is the present time; --any-clock accepts it",
        ),
    ],
)
def test_what_is_doubtful(text: str, as_of_ms: int, told: str | None) -> None:
    doubt = doubt_of_clock(text, as_of_ms, NOW_MS)
    assert (None if doubt is None else doubt.text(option_names())) == told


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("2023-11-15T00:13:20", True),
        ("2023-11-15T00:13:20Z", False),
        ("2023-11-15T02:13:20+02:00", False),
        ("2023-11-14T22:13:20-02:00", False),
        ("1700007200000", False),
    ],
)
def test_a_local_time_is_what_may_have_been_meant(text: str, is_told: bool) -> None:
    doubt = doubt_of_clock(text, NOW_MS + 7_200_000, NOW_MS)
    assert doubt is not None
    assert ("a time without a zone is taken for UTC" in doubt.problem) is is_told


@pytest.fixture
def compactor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Code, and all that was said; the engine makes nothing up but an empty report."""
    monkeypatch.setattr(cleaner_manager, "run_round", lambda *_: report())

    def run(*words: object) -> tuple[int, str]:
        code = cli.main([*map(str, words), *COMPACTED])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def in_an_hour() -> str:
    return str(time.time_ns() // 1_000_000 + 3_600_000)


def in_seconds() -> str:
    return str(int(time.time()))


@pytest.mark.parametrize(
    ("as_of", "told"),
    [(in_an_hour, "ahead of this machine's clock"), (in_seconds, "are those seconds?")],
)
def test_a_run_is_refused_and_what_only_reads_warns(
    log_dir: Path,
    compactor: Callable[..., tuple[int, str]],
    as_of: Callable[[], str],
    told: str,
) -> None:
    before, text = state_of(log_dir), as_of()
    code, said = compactor("run", log_dir, "--as-of", text)
    assert (code, told in said, '"status":"usage"' in said) == (2, True, True)
    assert state_of(log_dir) == before
    assert compactor("run", log_dir, "--as-of", text, "--any-clock")[0] == 0
    for words in (["plan"], ["run", "--dry-run"]):
        code, said = compactor(*words, log_dir, "--as-of", text, "--format", "json")
        assert code == 0
        (warning,) = json.loads(said.splitlines()[0])["warnings"]
        assert warning.startswith(f"--as-of {text}: is ") and told in warning
        code, said = compactor(*words, log_dir, "--as-of", text, "--any-clock")
        assert (code, told in said) == (0, False)


def test_a_log_of_tomorrow_is_passed_over_without_any_clock(
    log_dir: Path, compactor: Callable[..., tuple[int, str]]
) -> None:
    path = min((log_dir / "orders-0").glob("*.log"))
    tomorrow = time.time() + 86_400
    os.utime(path, (tomorrow, tomorrow))
    code, said = compactor("plan", log_dir)
    assert (code, '"to_clean":0' in said) == (0, True)
    assert " h after the clock of the round" in " ".join(said.split())
    assert '"to_clean":1' in compactor("plan", log_dir, "--any-clock")[1]


def test_the_clock_is_shown(
    log_dir: Path,
    compactor: Callable[..., tuple[int, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = "2023-11-14T22:13:20.000Z"
    clock = ("--as-of", "2023-11-14T22:13:20Z", "--any-clock")
    assert f"Plan as of {told}" in compactor("plan", log_dir, *clock)[1]
    document = json.loads(compactor("plan", log_dir, *clock, "--format", "json")[1])
    assert (document["as_of"], document["as_of_ms"]) == (told, NOW_MS)
    explain = ["explain", str(log_dir), "orders-0", *clock, *COMPACTED[2:]]
    assert cli.main(explain) == 0
    assert f"As of {told}" in capsys.readouterr().out
    assert cli.main([*explain, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["as_of"] == told
