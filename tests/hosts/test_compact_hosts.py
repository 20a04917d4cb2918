"""conf/hosts/compact-hosts: three "hosts" that each see a broker's directory of their own are
compacted; one is refused, and one is not there."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from demo.workload import write_log_dir

COMPACTOR = Path(sys.executable).parent / "compactor"
SCRIPT = Path(__file__).parents[2] / "conf" / "hosts" / "compact-hosts"
# As ssh: a host, and a line for its shell. Where there is no such host, nothing is run.
RUN_ON = """#!/bin/sh
[ -d "$HOSTS/$1" ] || { echo "no such host: $1" >&2; exit 255; }
exec ${UNSHARE:?} sh -c 'mount --bind "$HOSTS/$0" "$HOSTS/seen" && exec sh -c "$1"' "$1" "$2"
"""
UNSHARE = "unshare --mount" if os.geteuid() == 0 else "unshare --mount --user --map-root-user"
pytestmark = pytest.mark.spark


def test_each_is_compacted_and_there_is_one_report(tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    now_ms = int(time.time() * 1000)
    for host in "abce":
        write_log_dir(str(tmp_path / host), 60_000, now_ms, seed=ord(host))
    (tmp_path / "e" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "hosts.txt").write_text("# brokers\na\n\nb\nc\nd\ne\n")
    run_on = tmp_path / "run-on"
    run_on.write_text(RUN_ON)
    run_on.chmod(0o755)
    words = [str(SCRIPT), "--at-once", "2", "--reports", str(tmp_path / "reports")]
    words += [str(tmp_path / "hosts.txt"), "--", str(tmp_path / "seen")]
    words += [
        "--set",
        "cleanup.policy=compact",
        "--include",
        "orders|prices",
        "--master",
        "local[1]",
    ]
    settings = {"RUN_ON": str(run_on), "COMPACTOR": str(COMPACTOR)}
    settings |= {"HOSTS": str(tmp_path), "UNSHARE": UNSHARE}
    ended = subprocess.run(words, env=os.environ | settings, capture_output=True, text=True)
    summary = json.loads(ended.stdout.splitlines()[-1])
    assert ended.returncode == summary["exit_code"] == 1  # d was not there
    assert summary["totals"]["logs"]["cleaned"] == 9  # orders-0, orders-1, prices-0 of each
    found = {
        path.stem: json.loads(path.read_text()) for path in (tmp_path / "reports").glob("*.json")
    }
    assert {host: document["exit_code"] for host, document in found.items()} == {
        "a": 0,
        "b": 0,
        "c": 0,
        "d": 1,
        "e": 3,
    }
    assert found["e"]["reason_code"] == "unclean-shutdown"
    assert "ended with 255" in found["d"]["error"]
    assert not os.listdir(tmp_path / "seen")  # which none but the hosts ever saw
    for host in "abc":
        verified = subprocess.run([COMPACTOR, "verify", tmp_path / host], capture_output=True)
        assert verified.returncode == 0
    again = subprocess.run(words, env=os.environ | settings, capture_output=True, text=True)
    assert again.returncode == 2 and "has reports already" in again.stderr
