"""Commands that messages print: their words, quotes and options."""

import json
import os
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from compactor.host.shell_commands import (
    TypedOptions,
    about_file,
    as_user,
    compactor,
    note_typed_options,
    option,
    tool,
    typed_options_forgotten,
    with_typed_options,
)
from storage.formats import clean_shutdown
from storage.log.log_dir_lock import LOCK_FILE
from tests.compactor.plan_logs import build
from tests.support.local_command import run_command
from tests.support.lock_holding import holding


def test_words_are_quoted_and_options_come_behind_operands() -> None:
    assert compactor("log read", "/data/a b", "t-0", options=("--limit", "20")) == (
        "compactor log read '/data/a b' t-0 --limit 20"
    )
    assert about_file("verify", "/data/a b/t-0/0.log") == "compactor verify '/data/a b' t-0"
    assert tool("mount", "-o", "remount,rw", "/a b") == "mount -o remount,rw '/a b'"
    assert tool("kafka-configs.sh", "--all", into="a b") == "kafka-configs.sh --all > 'a b'"


def test_names_that_begin_with_a_dash_are_no_options() -> None:
    assert compactor("log read", "/data", "-foo-0", options=("--limit", "20")) == (
        "compactor log read --limit 20 -- /data -foo-0"
    )
    assert option("--trust-topic-configs", "foo") == "--trust-topic-configs foo"
    assert option("--trust-topic-configs", "-foo") == "--trust-topic-configs=-foo"


def test_an_owner_without_a_name_is_no_name_for_sudo() -> None:
    assert as_user("kafka", 7, 8, "plan", "/d") == "sudo -u kafka compactor plan /d"
    assert as_user(None, 1001, 8, "plan", "/d") == (
        "setpriv --reuid=1001 --regid=8 --clear-groups compactor plan /d"
    )


def test_an_unclean_log_directory_is_recovered_first(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    os.remove(tmp_path / "d" / clean_shutdown.CLEAN_SHUTDOWN)
    roll = f"compactor log roll {log_dir} t-0"
    assert compactor("log roll", log_dir, "t-0") == f"{roll} --recover-first"
    assert compactor("verify", log_dir, "t-0") == f"compactor verify {log_dir} t-0"
    assert compactor("run", "/not/here") == "compactor run /not/here"
    clean_shutdown.write(log_dir)
    assert compactor("log roll", log_dir, "t-0") == roll


def test_what_was_typed_about_settings_is_carried_over_where_it_is_taken() -> None:
    takes = {
        "run": ("--topic-configs", "--set", "--include", "--as-of", "--report"),
        "explain": ("--topic-configs", "--set", "--as-of"),
        "log roll": ("--topic-configs", "--set"),
        "verify": ("--as-of", "--against", "--topic-configs"),
    }
    typed = (
        *(("--topic-configs", "-a b"), ("--include", "x"), ("--set", "a=1"), ("--set", "b=2")),
        *(("--as-of", "7"), ("--report", "r.json"), ("--save", "s")),
    )
    with typed_options_forgotten():
        note_typed_options(TypedOptions(typed, takes.__getitem__))
        settings = "'--topic-configs=-a b' --set a=1 --set b=2"
        assert compactor("log roll", "/d", "t-0") == f"compactor log roll /d t-0 {settings}"
        assert compactor("explain", "/d", "t-0") == f"compactor explain /d t-0 {settings} --as-of 7"
        assert compactor("verify", "/d") == "compactor verify /d"
        assert as_user("kafka", 7, 8, "verify", "/d") == "sudo -u kafka compactor verify /d"
        assert compactor("verify", "/d", options=("--against", "/c")) == (
            "compactor verify /d --against /c '--topic-configs=-a b'"
        )
        assert with_typed_options("run", "/d", options=("--include", "y", "--set", "c=3")) == (
            "compactor run /d --include y --set c=3 '--topic-configs=-a b' --set a=1 --set b=2 "
            "--as-of 7"
        )
    assert compactor("explain", "/d", "t-0") == "compactor explain /d t-0"


@pytest.mark.parametrize("given", ["--topic-configs", "--topic-configs="])
def test_the_command_line_notes_what_is_typed(given: str, tmp_path: Path) -> None:
    """As it was typed, and no longer than its command lasts."""
    log_dir, configs = build(tmp_path / "d"), tmp_path / "a b.json"
    configs.write_text(json.dumps({"t": {"cleanup.policy": "compact"}}))
    words = (given, configs) if given.endswith("s") else (f"{given}{configs}",)
    done = run_command(
        "plan", log_dir, *words, "--set", "min.cleanable.dirty.ratio=0", "--any-clock"
    )
    said = f"  compactor run {log_dir} --dry-run --topic-configs '{configs}'"
    assert f"{said} --set min.cleanable.dirty.ratio=0 --any-clock\n" in done.out
    assert compactor("run", "/d") == "compactor run /d"


def test_a_directory_where_a_broker_works_is_not_called_unclean(tmp_path: Path) -> None:
    """It has no mark of a clean shutdown, and will have one once the broker has stopped."""
    log_dir = build(tmp_path / "d")
    os.remove(tmp_path / "d" / clean_shutdown.CLEAN_SHUTDOWN)
    broker = holding(tmp_path / "d" / LOCK_FILE)
    with subprocess.Popen(broker, stdin=PIPE, stdout=PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        assert compactor("run", log_dir) == f"compactor run {log_dir}"
    assert compactor("run", log_dir) == f"compactor run {log_dir} --recover-first"
